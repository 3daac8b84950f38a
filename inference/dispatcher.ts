/**
 * Admission to the model servers: permits per model, then global (seed 000), per worker process,
 * shared by every chunk of every batch. A fair queue can stand behind the same port.
 */
export interface Dispatcher {
  /**
   * Waits for a permit of `request.model` and then a global one. Waiters of a model are served by
   * priority, then round robin over tenants. @throws AbortError when `signal` aborts first.
   */
  acquire(request: AcquireRequest, signal?: AbortSignal): Promise<Permit>;
}

/** Who asks for a permit and for what. */
export interface AcquireRequest {
  readonly tenant: string;
  readonly batchId: string;
  /** Route key and model: what the per-model limit counts. */
  readonly model: string;
  readonly deadlineMs: number;
  /** Share of a permit's worth; 1 today. */
  readonly cost: number;
  /** 2 urgent, 3 normal, 4 relaxed. */
  readonly priority?: number;
}

/** Leave for one request at a time; not held through a back-off. */
export interface Permit {
  /** Gives global, then model back. A second call is a bug: it trips the guard (`permit_released_twice`) and frees nothing. */
  release(): void;
}
