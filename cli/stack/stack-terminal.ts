import type { ComponentEvent } from '../../embedded/supervision/component';
import { terminalLine, type ShownLevel } from '../../embedded/terminal-lines';
import type { PhaseReport } from '../../platform/shutdown';
import { say } from '../output';

/** Lowest level shown of each component's log. Default: `error`. */
export type ShownLevels = Readonly<Record<string, ShownLevel>>;

/** Shows what a stack reports. */
export interface StackTerminal {
  say(message: string): void;
  onLine(component: string, line: string): void;
  onEvent(component: string, event: ComponentEvent): void;
  onPhase(phase: PhaseReport): void;
  /** Hides log lines and events from now on: the components are being stopped, so their ends are expected. */
  quiet(): void;
}

/** Writes log lines and events to stderr. */
export function createStackTerminal(levels: ShownLevels): StackTerminal {
  let isQuiet = false;
  return {
    say,
    onLine(component, line) {
      const text = terminalLine(component, line, isQuiet ? 'none' : (levels[component] ?? 'error'));
      if (text !== null) process.stderr.write(`${text}\n`);
    },
    onEvent(component, event) {
      if (isQuiet) return;
      const text = eventMessage(component, event);
      if (text !== null) say(text);
    },
    onPhase: (phase) => say(phaseMessage(phase)),
    quiet: () => void (isQuiet = true),
  };
}

function eventMessage(component: string, event: ComponentEvent): string | null {
  switch (event.kind) {
    case 'started':
      return null;
    case 'ready':
      return `${component} ready after ${seconds(event.tookMs)}`;
    case 'died':
      return `${component} ended (${event.how}): restarting it in ${seconds(event.restartInMs)}`;
    case 'killed':
      return `${component} did not stop within ${seconds(event.afterMs)}: killed`;
  }
}

function phaseMessage({ name, result, tookMs, error }: PhaseReport): string {
  if (result === 'done') return `stopped ${name} in ${seconds(tookMs)}`;
  if (result === 'timeout') return `gave up on stopping ${name} after ${seconds(tookMs)}`;
  return `stopping ${name} failed: ${error instanceof Error ? error.message : String(error)}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 1_000 ? 2 : 1)} s`;
}
