/**
 * Whether a gateway reports that it dispatched a request, by the interim answer `102 Processing`
 * (docs/design/held-requests.md#dispatch-reports). If it does, a request without one is held in the gateway's
 * queue: no model server has seen it.
 *
 * The latest success decides. So if the gateway is replaced by a server that reports nothing, or by a path that
 * loses interim answers, the requests in flight there count as held only until the first one succeeds.
 */
export class DispatchReports {
  #areSent = false;

  /** Whether requests without a report count as held. */
  get areSent(): boolean {
    return this.#areSent;
  }

  /** A report has arrived. */
  onReport(): void {
    this.#areSent = true;
  }

  /** A request succeeded. `wasReported`: its dispatch was reported before. */
  onSuccess(wasReported: boolean): void {
    this.#areSent = wasReported;
  }
}
