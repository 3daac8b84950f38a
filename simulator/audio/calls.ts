import type { EventEmitter } from 'node:events';
import { status as CODE } from '@grpc/grpc-js';
import type { AudioSettings } from './settings';

/** Calls by kind. */
export type CallKind = 'file' | 'batch' | 'speech' | 'stream';

/** A call that the worker has taken. */
export interface TakenCall {
  /** Whether it goes on: it was neither cancelled nor failed. */
  readonly isOpen: boolean;
  /** Calls back after a time, if the call is open then. */
  after(ms: number, run: () => void): void;
  /** It has ended well. */
  end(): void;
}

/** A gRPC call, as far as all kinds have it. */
type Rpc = EventEmitter & { readonly cancelled: boolean };

/** What tests and benchmarks read. Times are Unix milliseconds. */
export interface CallStats {
  readonly calls: Record<CallKind, number>;
  readonly batch_sizes: number[];
  running: number;
  max_running: number;
  /** Calls that ended because the other side aborted them. */
  aborted: number;
  readonly aborted_at_ms: Record<string, number>;
  refused: number;
  readonly cancels: { id: string; at_ms: number }[];
  /** Bytes and SHA-256 of each recording, by request id. */
  readonly recordings: Record<string, { bytes: number; sha256: string; times: number }>;
}

/** Notes that are kept at most of each kind, so that a long run needs no more memory. */
const MAX_NOTES = 100_000;

/** The calls of a simulated worker: slots, faults, cancels and counters. */
export class Calls {
  readonly stats: CallStats = {
    ...{ calls: { file: 0, batch: 0, speech: 0, stream: 0 }, batch_sizes: [] },
    ...{ running: 0, max_running: 0, aborted: 0, aborted_at_ms: {}, refused: 0 },
    ...{ cancels: [], recordings: {} },
  };
  readonly #settings: () => AudioSettings;
  readonly #crash: () => void;
  readonly #open = new Map<string, Set<() => void>>();
  #sinceStart = 0;
  #recordings = 0;

  /** @param crash breaks all connections */
  constructor(settings: () => AudioSettings, crash: () => void) {
    this.#settings = settings;
    this.#crash = crash;
  }

  /** Takes a call; null if it is refused or fails, which it has been told then. */
  take(kind: CallKind, id: string, rpc: Rpc): TakenCall | null {
    const { stats } = this;
    const settings = this.#settings();
    stats.calls[kind]++;
    if (settings.crash_after > 0 && ++this.#sinceStart >= settings.crash_after) {
      this.#sinceStart = 0;
      this.#crash();
      return null;
    }
    if (kind !== 'stream' && settings.strict_slots && stats.running >= settings.slots) {
      stats.refused++;
      fail(rpc, CODE.RESOURCE_EXHAUSTED, 'no free slot');
      return null;
    }
    if (Math.random() < settings.failure_rate) {
      fail(rpc, settings.failure_code, 'simulated failure');
      return null;
    }
    return this.#run(kind, id, rpc);
  }

  /** Stops the calls with an id; false if there is none. */
  cancel(id: string): boolean {
    const { stats } = this;
    if (stats.cancels.length < MAX_NOTES) stats.cancels.push({ id, at_ms: Date.now() });
    if (this.#settings().deaf_cancel) return false;
    const found = this.#open.get(id);
    if (found === undefined) return false;
    for (const stop of [...found]) stop();
    return true;
  }

  noteRecording(id: string, bytes: number, sha256: string): void {
    const { recordings } = this.stats;
    const times = (recordings[id]?.times ?? 0) + 1;
    if (times === 1 && ++this.#recordings > MAX_NOTES) return;
    recordings[id] = { bytes, sha256, times };
  }

  #run(kind: CallKind, id: string, rpc: Rpc): TakenCall {
    const { stats } = this;
    const usesSlot = kind !== 'stream';
    const timers = new Set<NodeJS.Timeout>();
    let isOpen = true;
    const close = (): void => {
      if (!isOpen) return;
      isOpen = false;
      for (const timer of timers) clearTimeout(timer);
      this.#open.get(id)?.delete(stop);
      if (this.#open.get(id)?.size === 0) this.#open.delete(id);
      if (usesSlot) stats.running--;
    };
    const stop = (): void => {
      if (!isOpen) return;
      close();
      fail(rpc, CODE.CANCELLED, 'cancelled');
    };
    rpc.once('cancelled', () => {
      if (!isOpen) return;
      if (++stats.aborted <= MAX_NOTES) stats.aborted_at_ms[id] = Date.now();
      close();
    });
    this.#open.set(id, (this.#open.get(id) ?? new Set()).add(stop));
    if (usesSlot) stats.max_running = Math.max(stats.max_running, ++stats.running);
    return {
      get isOpen() {
        return isOpen;
      },
      after: (ms, run) => {
        const timer = setTimeout(() => {
          timers.delete(timer);
          if (isOpen && !this.#settings().hang) run();
        }, ms);
        timers.add(timer);
      },
      end: close,
    };
  }
}

/** Ends a call with a gRPC status. */
function fail(rpc: EventEmitter, code: number, details: string): void {
  rpc.emit('error', { code, details });
}
