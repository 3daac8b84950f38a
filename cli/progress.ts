/** Where a progress is drawn: the terminal's stderr, or a text in tests. */
export interface ProgressScreen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** What a batch says of its progress. */
export interface ProgressStep {
  readonly status: string;
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
}

/** Shows the steps of one batch on a screen. */
export interface Progress {
  show(step: ProgressStep, nowMs: number): void;
  /** Leaves the last state on the screen. */
  end(): void;
}

const WIDTH = 32;
/** Without a terminal: a line for every tenth, or for a new status. */
const PLAIN_STEPS = 10;

/** A bar that redraws itself on a terminal, and a few plain lines elsewhere. */
export function createProgress(screen: ProgressScreen, startedAtMs: number): Progress {
  let lastStep = -1;
  let lastStatus = '';
  return {
    show(step, nowMs) {
      const share = step.total === 0 ? 0 : (step.completed + step.failed) / step.total;
      const text = describe(step, share, nowMs - startedAtMs);
      if (screen.isTTY === true) {
        screen.write(`\r\u001b[K${bar(share)} ${text}`);
        return;
      }
      const plainStep = Math.floor(share * PLAIN_STEPS);
      if (step.status === lastStatus && plainStep === lastStep) return;
      screen.write(`${text}\n`);
      lastStep = plainStep;
      lastStatus = step.status;
    },
    end() {
      if (screen.isTTY === true) screen.write('\n');
    },
  };
}

function describe(step: ProgressStep, share: number, elapsedMs: number): string {
  const done = step.completed + step.failed;
  const failed = step.failed === 0 ? '' : `, ${step.failed} failed`;
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  const elapsed = `${(elapsedMs / 1_000).toFixed(1)} s`;
  return `${percent}  ${done} of ${step.total}${failed}  ${step.status}  ${elapsed}`;
}

function bar(share: number): string {
  const filled = Math.round(share * WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}]`;
}
