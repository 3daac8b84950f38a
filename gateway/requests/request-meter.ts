import type { FaultCode } from '../../core/dispatch/drop-codes';
import type { Band } from '../../core/dispatch/queue/band';
import type { DispatchedBy } from '../../core/dispatch/queue/queued-request';
import type { FlowMeters, ModelMeter, PushError } from '../../platform/series/flow-meters';

/** Refusals on arrival, by the names that the first description of the queue gives them. */
const PUSH_ERRORS: Readonly<Partial<Record<FaultCode, PushError>>> = {
  too_many_flows: 'ErrTooManyFlows',
  insufficient_flow_capacity: 'ErrInsufficientFlowCapacity',
  queue_bytes_exceeded: 'ErrQueueBytesExceeded',
  not_critical: 'ErrNotCritical',
  internal: 'ErrInternal',
};

/** Counts one request in the series of its model, band and tenant, from its arrival to its end. */
export class RequestMeter {
  readonly #flow: FlowMeters;
  readonly #who: { readonly model: string; readonly tenant: string };
  readonly #model: ModelMeter;
  #isQueued = false;
  #isInFlight = false;

  constructor(flow: FlowMeters, who: { readonly model: string; readonly tenant: string }) {
    this.#flow = flow;
    this.#who = who;
    this.#model = flow.enterModel(who.model);
  }

  queued(): void {
    this.#isQueued = true;
    this.#model.queued++;
  }

  leftQueue(): void {
    if (this.#isQueued) this.#model.queued--;
    this.#isQueued = false;
  }

  dispatched(band: Band, by: DispatchedBy): void {
    this.#isInFlight = true;
    this.#model.inFlight++;
    if (by === 'bypass') this.#model.bypassed++;
    this.#flow.bands[band].dispatched[by]++;
  }

  firstByte(band: Band, ttfbMs: number): void {
    this.#flow.bands[band].ttfb.observe(ttfbMs / 1_000);
  }

  /** The last exchange with a backend has ended. */
  served(band: Band, tokens: number): void {
    this.#leftBackends();
    this.#flow.addTokens(band, this.#who.tenant, tokens);
  }

  /** The client gets no answer of a backend. */
  dropped(band: Band, code: FaultCode): void {
    this.#flow.bands[band].dropped[code]++;
    if (code === 'client_closed') this.#model.cancelled++;
    if (code === 'queue_ttl_expired') this.#model.expired++;
    const error = PUSH_ERRORS[code];
    if (error !== undefined) this.#model.refused[error]++;
  }

  /** The answer had begun and was cut. */
  cut(band: Band): void {
    this.#flow.bands[band].cut++;
  }

  /** @param isSuccess whether the client got a 2xx */
  waited(waitedMs: number, isSuccess: boolean): void {
    const { ofSuccesses, ofOthers } = this.#model.queueTime;
    (isSuccess ? ofSuccesses : ofOthers).observe(waitedMs / 1_000);
  }

  /** The request is over, however it ended. Call it exactly once. */
  close(): void {
    this.leftQueue();
    this.#leftBackends();
    this.#flow.leaveModel(this.#who.model);
  }

  #leftBackends(): void {
    if (this.#isInFlight) this.#model.inFlight--;
    this.#isInFlight = false;
  }
}
