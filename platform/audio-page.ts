/** What `GET /admin/audio` of the gateway answers (docs/gateway.md#admin-audio). Times are in ms, sizes in bytes. */
export interface AudioPage {
  readonly workers: readonly AudioPageWorker[];
  readonly models: readonly AudioPageModel[];
  /** Requests without a slot, by their priority on arrival. */
  readonly waiting: Readonly<Record<'REALTIME' | 'BATCH', AudioPageWaiting>>;
  /** Open live sessions. */
  readonly sessions: number;
  readonly spool: { readonly bytes: number; readonly max_bytes: number };
  /** Settings that those of workers of batches depend on. */
  readonly limits: { readonly batch_queue_ttl_ms: number };
}

/** One audio worker. */
export interface AudioPageWorker {
  readonly address: string;
  /** Its own name for its software; empty until it has told. */
  readonly engine: string;
  readonly status: string;
  /** Why it gets no calls; null if it does. */
  readonly reason: string | null;
  /** `quarantined`: blocked after a cancel that the worker did not acknowledge. */
  readonly slots: {
    readonly total: number;
    readonly used: number;
    readonly free: number;
    readonly quarantined: number;
  };
  readonly streams: { readonly total: number; readonly used: number };
  /** Names of its models. */
  readonly models: readonly string[];
}

/** What one worker says of one of its models. Empty lists mean "any". */
export interface AudioPageModel {
  readonly name: string;
  readonly worker: string;
  readonly tasks: readonly string[];
  readonly languages: readonly string[];
  readonly voices: readonly string[];
  readonly speech_formats: readonly string[];
  /** Recordings in one call. */
  readonly max_batch: number;
  /** Whether it transcribes live. */
  readonly streaming: boolean;
}

/** Requests of one priority that wait. */
export interface AudioPageWaiting {
  readonly requests: number;
  /** How long the oldest waits; null if none does. */
  readonly oldest_ms: number | null;
}
