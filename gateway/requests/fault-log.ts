import type { FaultCode } from '../../core/dispatch/drop-codes';
import { BAND, BAND_NAMES, type Band } from '../../core/dispatch/queue/band';
import type { Logger } from '../../platform/logger';

/** A request that got no complete answer of a backend. Texts of the client other than its names are never logged. */
export interface Fault {
  /** `answer_cut`: the backend's answer had begun. */
  readonly code: FaultCode | 'answer_cut';
  readonly band: Band;
  readonly requestId: string;
  readonly tenant: string;
  /** Null while the body, which names the model, was not read. */
  readonly model: string | null;
  readonly pool: string | null;
  /** How long it waited in the queue, ms. */
  readonly waitedMs: number;
  /** The last backend that it was sent to, without secrets; null if there was none. */
  readonly backend: string | null;
  /** What happened at the backend; null for nothing. */
  readonly reason: string | null;
}

/** Further faults of one kind, since the one that was logged. */
interface More {
  readonly place: Readonly<Record<string, string | null>>;
  readonly level: 'info' | 'warn';
  count: number;
}

/** How often {@link FaultLog.flush} is called, ms. */
export const FAULT_LOG_MS = 10_000;

/**
 * Logs requests that were not served, without flooding the log: of each pool, band, code and backend the first one in
 * 10 s, and then how many more there were. So a full queue costs two lines, not one for each refused request. Each
 * request is on a line of its own at the level `debug`.
 */
export class FaultLog {
  readonly #logger: Logger;
  readonly #more = new Map<string, More>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  log(fault: Fault): void {
    // Clients hang up all the time.
    if (fault.code === 'client_closed') return;
    const { code, pool, backend, requestId, tenant, model, waitedMs, reason } = fault;
    const band = BAND_NAMES[fault.band];
    const key = `${pool} ${band} ${code} ${backend}`;
    const known = this.#more.get(key);
    if (known !== undefined) {
      known.count++;
      return;
    }
    const place = { pool, band, code, ...(backend === null ? {} : { backend }) };
    const level = levelOf(fault);
    this.#more.set(key, { place, level, count: 0 });
    const own = { requestId, tenant, model, waitedMs: Math.round(waitedMs) };
    const why = reason === null ? {} : { reason };
    this.#logger[level]({ ...place, ...own, ...why }, 'request not served');
  }

  /** Logs how many more there were, and begins again. To be called every {@link FAULT_LOG_MS}. */
  flush(): void {
    for (const { place, level, count } of this.#more.values()) {
      if (count > 0) this.#logger[level]({ ...place, count }, 'more requests not served');
    }
    this.#more.clear();
  }
}

/** What a busy or stopping gateway does to batches, and what clients ask for, is no fault. */
const EXPECTED: ReadonlySet<Fault['code']> = new Set([
  'shutting_down',
  'deadline_exceeded',
  'not_critical',
]);
const OF_BACKENDS: ReadonlySet<Fault['code']> = new Set([
  'backend_unreachable',
  'backend_lost',
  'backend_timeout',
  'answer_cut',
  'no_backends',
  'internal',
]);

function levelOf({ code, band }: Fault): 'info' | 'warn' {
  if (OF_BACKENDS.has(code)) return 'warn';
  return EXPECTED.has(code) || band === BAND.sheddable ? 'info' : 'warn';
}
