import { setTimeout as delay } from 'node:timers/promises';
import type { SignalSource } from '../../platform/shutdown';

/** Ctrl-C and SIGTERM as state that a command can wait for and handle, more than once. */
export interface Interrupts {
  /** Aborts at the next interrupt. {@link Interrupts.rearm} replaces it. */
  readonly signal: AbortSignal;
  /** The interrupt that was not handled yet, or `null`. */
  readonly pending: NodeJS.Signals | null;
  /** Marks the interrupt as handled and waits for the next one. */
  rearm(): void;
  /** Resolves after `ms`, or at an interrupt. Never throws. */
  sleep(ms: number): Promise<void>;
  /** Restores Node's own signal handling. */
  close(): void;
}

/** Terminals and `npm` may deliver one Ctrl-C twice. */
const GAP_MS = 1_000;
const NAMES = ['SIGINT', 'SIGTERM'] as const;

/** Listens until `close`. A second signal within 1 s counts as the same one. */
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
      // It rejects only when the signal aborts, and then `pending` is set.
      await delay(ms, undefined, { signal: abort.signal }).catch(() => undefined);
    },
    close() {
      for (const name of NAMES) source.off(name, onSignal);
    },
  };
}

/** Interrupts for a command with its own signal handlers: `signal` aborts once and for good. */
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
