import { NightshiftError } from '../core/errors';
import { within } from './within';

/** One phase of a shutdown. Phases run one after another; a late or failed one does not stop the next. */
export interface ShutdownPhase {
  readonly name: string;
  /** How long to wait; after that the next phase starts, and this one is reported as `timeout`. */
  readonly timeoutMs: number;
  run(): Promise<void>;
}

/** How one phase of a shutdown ended. */
export interface PhaseReport {
  readonly name: string;
  readonly result: 'done' | 'timeout' | 'failed';
  readonly tookMs: number;
  readonly error?: unknown;
}

/** A report as fields of a log line. The field is `phase`, because `name` is the name of the logger. */
export function phaseRecord({ name, error, ...rest }: PhaseReport): Record<string, unknown> {
  return { phase: name, ...rest, ...(error === undefined ? {} : { err: error }) };
}

/** Runs the phases in order and reports the end of each; never rejects. */
export async function runPhases(
  phases: readonly ShutdownPhase[],
  report: (phase: PhaseReport) => void = () => undefined,
): Promise<PhaseReport[]> {
  const reports: PhaseReport[] = [];
  for (const phase of phases) {
    const done = await runPhase(phase);
    reports.push(done);
    report(done);
  }
  return reports;
}

function runPhase(phase: ShutdownPhase): Promise<PhaseReport> {
  const startedAt = performance.now();
  const end = (result: PhaseReport['result'], error?: unknown): PhaseReport => {
    const tookMs = Math.round(performance.now() - startedAt);
    return { name: phase.name, result, tookMs, ...(error === undefined ? {} : { error }) };
  };
  // An async function turns an error that `run` throws synchronously into a rejection.
  const finished = (async () => phase.run())().then(
    () => end('done'),
    (error: unknown) =>
      end('failed', error ?? new NightshiftError('internal', 'rejected with nothing')),
  );
  return within(phase.timeoutMs, finished, () => end('timeout'));
}

/** The actions of the two stages of signals. */
export interface SignalHandlers {
  /** The first signal: drain. Called once. */
  drain(signal: NodeJS.Signals): void;
  /** A further signal, at least `gapMs` after the first: end at once. */
  force(signal: NodeJS.Signals): void;
}

/** The methods of `process` that deliver signals; tests pass an emitter. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

/**
 * Two-stage signals: the first SIGINT, SIGTERM or SIGHUP drains, a second one ends the process at once.
 * A second one within `gapMs` (1 s) is ignored, because terminals and `npm` deliver one Ctrl-C twice.
 *
 * @returns a function that removes the handlers
 */
export function installSignals(
  handlers: SignalHandlers,
  options: { source?: SignalSource; gapMs?: number; nowMs?: () => number } = {},
): () => void {
  const { source = process, gapMs = 1_000, nowMs = () => performance.now() } = options;
  let firstAtMs: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstAtMs === undefined) {
      firstAtMs = nowMs();
      handlers.drain(signal);
    } else if (nowMs() - firstAtMs >= gapMs) {
      handlers.force(signal);
    }
  };
  for (const name of DRAIN_SIGNALS) source.on(name, onSignal);
  return () => {
    for (const name of DRAIN_SIGNALS) source.off(name, onSignal);
  };
}

const DRAIN_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
