import { terminalLine, type ShownLevel } from '../../embedded/terminal-lines';
import type { ComponentEvent } from '../../embedded/supervision/component';
import type { PhaseReport } from '../../platform/shutdown';
import { say } from '../output';

/** Lowest level shown of each part's log; a part that is not named shows `error` and above. */
export type ShownLevels = Readonly<Record<string, ShownLevel>>;

/** What a stack tells its terminal. */
export interface StackTerminal {
  say(message: string): void;
  onLine(part: string, line: string): void;
  onEvent(part: string, event: ComponentEvent): void;
  onPhase(phase: PhaseReport): void;
  /** From now on parts end because they are told to: what they log is for their files alone. */
  quiet(): void;
}

/** Prefixed log lines and the stack's news on stderr. */
export function createStackTerminal(levels: ShownLevels): StackTerminal {
  let isQuiet = false;
  return {
    say,
    onLine(part, line) {
      const text = terminalLine(part, line, isQuiet ? 'none' : (levels[part] ?? 'error'));
      if (text !== null) process.stderr.write(`${text}\n`);
    },
    onEvent(part, event) {
      if (isQuiet) return;
      const text = news(part, event);
      if (text !== null) say(text);
    },
    onPhase: (phase) => say(phaseNews(phase)),
    quiet: () => void (isQuiet = true),
  };
}

function news(part: string, event: ComponentEvent): string | null {
  switch (event.kind) {
    case 'started':
      return null;
    case 'ready':
      return `${part} ready after ${seconds(event.tookMs)}`;
    case 'died':
      return `${part} ended (${event.how}): starting it again in ${seconds(event.restartInMs)}`;
    case 'killed':
      return `${part} did not stop within ${seconds(event.afterMs)}: killed`;
  }
}

function phaseNews({ name, result, tookMs, error }: PhaseReport): string {
  if (result === 'done') return `stopped ${name} in ${seconds(tookMs)}`;
  if (result === 'timeout') return `gave up on stopping ${name} after ${seconds(tookMs)}`;
  return `stopping ${name} failed: ${error instanceof Error ? error.message : String(error)}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 1_000 ? 2 : 1)} s`;
}
