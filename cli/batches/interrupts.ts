import { setTimeout as delay } from 'node:timers/promises';
import type { SignalSource } from '../../platform/shutdown';

/** Ctrl-C and SIGTERM as something that can be waited for, answered, and waited for again. */
export interface Interrupts {
  /** Aborts at the next interruption. A new one after {@link Interrupts.rearm}. */
  readonly signal: AbortSignal;
  /** The interruption that is not answered yet. */
  readonly pending: NodeJS.Signals | null;
  /** The interruption was answered: wait for the next one. */
  rearm(): void;
  /** Waits, but not beyond an interruption; does not throw. */
  sleep(ms: number): Promise<void>;
  /** Leaves the signals to Node again. */
  close(): void;
}

/** Terminals and `npm` deliver one Ctrl-C twice. */
const GAP_MS = 1_000;
const NAMES = ['SIGINT', 'SIGTERM'] as const;

/** Listens until it is closed. A signal within 1 s of the one before is the same one. */
export function listenForInterrupts(
  source: SignalSource,
  nowMs: () => number = () => performance.now(),
): Interrupts {
  let abort = new AbortController();
  let pending: NodeJS.Signals | null = null;
  let lastAtMs = -Infinity;
  const onSignal = (name: NodeJS.Signals): void => {
    const atMs = nowMs();
    if (atMs - lastAtMs < GAP_MS) return;
    lastAtMs = atMs;
    pending = name;
    abort.abort();
  };
  for (const name of NAMES) source.on(name, onSignal);
  return {
    get signal() {
      return abort.signal;
    },
    get pending() {
      return pending;
    },
    rearm() {
      pending = null;
      abort = new AbortController();
    },
    async sleep(ms) {
      // The only thing that rejects it is the signal, and that is what `pending` tells.
      await delay(ms, undefined, { signal: abort.signal }).catch(() => undefined);
    },
    close() {
      for (const name of NAMES) source.off(name, onSignal);
    },
  };
}

/** The interruption of a command that has its own signal handlers: `signal` aborts once, for good. */
export function interruptsFrom(signal: AbortSignal): Interrupts {
  return {
    signal,
    get pending() {
      return signal.aborted ? 'SIGTERM' : null;
    },
    rearm: () => undefined,
    async sleep(ms) {
      await delay(ms, undefined, { signal }).catch(() => undefined);
    },
    close: () => undefined,
  };
}
