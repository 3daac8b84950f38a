import type { CreateOutcome, IdempotentOutcome } from '../core/delegation/call-outcome';
import type { JobCounts, JobUsage } from '../core/delegation/job-counts';

/**
 * The batch API of one provider: one entry of the setting `providers`. An adapter implements it for a type of
 * provider. It makes single calls and translates; it never retries, waits, or remembers a job. Callers decide
 * what happens next, from rows in PostgreSQL (docs/design/providers.md#the-port).
 *
 * A method rejects only for a fault of the caller or of what the caller passes in, such as an object that
 * cannot be read. Whatever the provider or the network does is a {@link CallResult}.
 */
export interface Provider {
  /** The fingerprint of the account, as jobs are recorded with it. */
  readonly account: string;
  readonly capabilities: ProviderCapabilities;

  /**
   * Translates one line of the input file to a line of the job's input. Pure. It throws for no input that has
   * passed the line checks of ingestion: what cannot be expressed is `refused`.
   */
  encode(line: LineToEncode): EncodedLine;

  /**
   * The completion window to send with a create, in the provider's own format; null if it takes none. Pure.
   * The caller records it before the first attempt, because each attempt must send the same request.
   * @param timeLeftMs from now to the time at which the caller gives up the job
   */
  completionWindow(timeLeftMs: number): string | null;

  /**
   * Uploads the input of a job. A repetition makes a second remote input, which is harmless and which
   * {@link cleanup} may remove. Providers with inline input refuse the call with an error.
   */
  upload(job: JobToCreate, input: JobInput, call: UploadOptions): Promise<IdempotentResult<string>>;

  /**
   * One look at an uploaded input, before the first create. A create with an input that is `processing` would be
   * refused. Providers that take an input at once answer `ready` without a call.
   */
  inputState(remoteInput: string, call: CallOptions): Promise<IdempotentResult<InputState>>;

  /**
   * Looks the job up, as a create may have succeeded although its answer was lost
   * (docs/design/providers.md#look-up-of-jobs). `none` is certain: all jobs since `job.listFromMs` were seen.
   * It costs one call per page of the provider's list.
   */
  find(job: JobToFind, call: CallOptions): Promise<IdempotentResult<FoundJob>>;

  /**
   * Creates the job with one request. It is not repeated, and a redirect is not followed. The caller holds
   * the lease of the job and has looked it up; `call.timeoutMs` ends within the lease.
   */
  create(job: NewJob, call: SendOptions): Promise<CreateResult>;

  /** One look at a job. `gone` if the provider does not know it. */
  status(externalId: string, call: CallOptions): Promise<IdempotentResult<JobStatus>>;

  /**
   * Streams the results of an ended job, in the provider's order, with one call per result file. `take` is
   * called for one result at a time. While its promise is pending, nothing more is read. If it throws, the
   * download ends and `results` rejects with its error. Results may be missing, doubled or foreign; the
   * caller decides by wire id.
   */
  results(
    job: JobStatus,
    take: (result: LineResult) => void | Promise<void>,
    call: ResultOptions,
  ): Promise<IdempotentResult<ResultTotals>>;

  /**
   * Asks the provider to cancel the job. Idempotent: `ended` if the job has already ended. `unsupported` if the
   * provider cannot cancel; that is a valid answer, and nothing was called.
   */
  cancel(
    externalId: string,
    call: CallOptions,
  ): Promise<IdempotentResult<'requested' | 'ended' | 'unsupported'>>;

  /**
   * The jobs of this installation that have not ended, by the marker with its store id, back to `sinceMs`. One call
   * per page of the provider's list. Absent if the list does not show our marker; then orphans are not searched for
   * (docs/design/delegation.md#orphans).
   */
  listMarked?(marker: MarkerToList, call: CallOptions): Promise<IdempotentResult<MarkedJob[]>>;

  /** Deletes what the job left at the provider. Idempotent: what is gone counts as deleted. */
  cleanup(remains: JobRemains, call: CallOptions): Promise<IdempotentResult<void>>;

  /** Closes all connections. Calls in flight fail. */
  close(): Promise<void>;
}

/** What a provider can do, and its limits. Settings may lower the limits. */
export interface ProviderCapabilities {
  /** `uploaded`: the input is uploaded first and named in the create; `inline`: it is the body of the create. */
  readonly input: 'uploaded' | 'inline';
  /**
   * How {@link Provider.find} recognises a job (docs/design/providers.md#look-up-of-jobs): `key` by a request
   * key that the provider deduplicates, `name` by the job's name, `filter` by an exact filter at the server,
   * `list` by an exact field in a list, `inert` because an unstarted job does nothing, `window` by the time of
   * its create, proven by results.
   */
  readonly find: 'key' | 'name' | 'filter' | 'list' | 'inert' | 'window';
  /** Whether the provider stores our marker, so that jobs without a row can be recognised. */
  readonly storesMarker: boolean;
  /** Whether all lines of a job must name the same model. */
  readonly isSingleModel: boolean;
  readonly canCancel: boolean;
  /** Lines of a job; null if the provider states no limit. */
  readonly maxLines: number | null;
  /** Bytes of a job's input; null if the provider states no limit. */
  readonly maxBytes: number | null;
  /** Inputs of the embeddings requests of a job, where one line may hold many; null if unlimited. */
  readonly maxEmbeddingInputs: number | null;
  /** The shortest interval between two looks at a job, ms. */
  readonly minPollMs: number;
  /** How long a late create may still take effect, and stay out of the list, ms. */
  readonly settleMs: number;
  /** How long results may be missing after the end of the job, ms. */
  readonly resultsLagMs: number;
}

/** One line of the input file. */
export interface LineToEncode {
  /** The line's id at the provider; the customer's `custom_id` is never sent. */
  readonly wireId: string;
  /** The endpoint of the batch, such as `/v1/chat/completions`. */
  readonly endpoint: string;
  /** The provider's name of the model; null to send the body's own. */
  readonly model: string | null;
  /** The value of the line's `body`: a JSON object without line breaks. */
  readonly body: Buffer;
  /** For types that translate lines; the others send bodies as they are. */
  readonly translation: TranslationOptions;
}

/** How lines are translated into the provider's format. */
export interface TranslationOptions {
  /** Drops or clamps members that the format cannot express, instead of refusing the line. */
  readonly dropParams: boolean;
  /** Most tokens of an answer whose line states none, for formats that demand the number. */
  readonly defaultMaxTokens: number;
  /** Members that are set in each translated request, in the provider's own format. */
  readonly extraBody: Readonly<Record<string, unknown>>;
}

/** A line as it is written to the job's input, or why it cannot be. */
export type EncodedLine =
  | {
      readonly kind: 'line';
      /** Without a line end. */
      readonly bytes: Buffer;
      /** What all lines of a job have in common, such as a language that a create states once. Default: nothing. */
      readonly common?: string;
    }
  | {
      readonly kind: 'refused';
      /** The member that cannot be expressed, such as `tools[0].strict`, as OpenAI's `param`. */
      readonly param: string;
      readonly message: string;
    };

/** The staged input of a job. */
export interface JobInput {
  readonly bytes: number;
  /** Reads the input from its start. It is called once per call that sends the input. */
  open(): AsyncIterable<Uint8Array>;
}

/** `ready`: waiting changes nothing, so the job may be created, or its create is refused for good. */
export type InputState = 'ready' | 'processing';

/** Who a job is. All attempts at one job pass equal values. */
export interface JobToCreate {
  /** `job_` and 32 hex digits; the key of the job at providers that take one. */
  readonly jobId: string;
  /** The id of this installation's object store, which tells our jobs from those of another installation. */
  readonly storeId: string;
  readonly endpoint: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** Lines of the input. */
  readonly lines: number;
  /** How many installations have delegated the batch to each other before this one; 0 for a batch of a user. */
  readonly hops: number;
}

/** A job that may exist. */
export interface JobToFind extends JobToCreate {
  /** What {@link Provider.upload} returned; null for inline input, or if nothing was uploaded. */
  readonly remoteInput: string | null;
  /** What {@link Provider.completionWindow} returned. */
  readonly window: string | null;
  /**
   * Older jobs are not looked at, Unix ms. It precedes the first attempt by more than the clocks may differ.
   * The creation of the batch serves also after PostgreSQL was restored.
   */
  readonly listFromMs: number;
}

/** The request for a job. */
export interface NewJob extends Omit<JobToFind, 'listFromMs'> {
  /** The staged input, for providers with inline input; null for the others. */
  readonly inline: JobInput | null;
}

/** What a look-up found. */
export type FoundJob =
  | { readonly kind: 'none' }
  | { readonly kind: 'job'; readonly job: CreatedJob }
  /** Jobs that may be ours; only their results can prove it. Never cancel or delete one before. */
  | { readonly kind: 'candidates'; readonly externalIds: readonly string[] };

/** A job that exists at the provider. */
export interface CreatedJob {
  readonly externalId: string;
  /** By the provider's clock, Unix ms; null if it does not say. */
  readonly createdAtMs: number | null;
}

/** Which jobs are listed by our marker. */
export interface MarkerToList {
  readonly storeId: string;
  /** Older jobs are not looked at, Unix ms. */
  readonly sinceMs: number;
}

/** A job at the provider that carries our marker. */
export interface MarkedJob {
  readonly externalId: string;
  readonly jobId: string;
}

/** States of a job. A word that the adapter does not know is `running`, because time bounds a running job. */
export type JobState =
  'submitted' | 'running' | 'cancelling' | 'completed' | 'failed' | 'expired' | 'cancelled';

/** A look at a job. */
export interface JobStatus {
  readonly externalId: string;
  readonly state: JobState;
  /** The state in the provider's word, at most 100 characters. */
  readonly providerState: string;
  /** False if the adapter does not know the word; the caller logs a warning. */
  readonly isKnownState: boolean;
  /** Null if the provider does not count, or not yet. */
  readonly counts: JobCounts | null;
  /** Why the job failed as a whole; null if it did not, or the provider does not say. */
  readonly error: ProviderError | null;
  /** Lines that the provider blames for the failure of the job. The others may be submitted again. */
  readonly lineErrors: readonly LineError[];
  /** Whether the job failed because a quota of the account was used up: nothing ran, a new job may later. */
  readonly isQuotaRefusal: boolean;
  /** Result files, in the order in which {@link Provider.results} reads them. */
  readonly resultFiles: readonly string[];
  /** For an ended job: whether all files are there that its counts promise. They may appear after the end. */
  readonly hasAllResults: boolean;
  /** Tokens of the whole job; null if the provider does not say. */
  readonly usage: JobUsage | null;
}

/** An error in the provider's words: for logs and rows only, never for users. Configured keys are masked. */
export interface ProviderError {
  readonly code: string | null;
  /** At most 2,000 characters. */
  readonly message: string;
}

/** A line of the input that the provider refuses. */
export interface LineError extends ProviderError {
  /** Index in the job's input, from 0. */
  readonly index: number;
  readonly param: string | null;
}

/** The result of one line. */
export type LineResult =
  | {
      readonly kind: 'answer';
      readonly wireId: string;
      /** HTTP status of the answer, ≥ 100. */
      readonly status: number;
      readonly requestId: string | null;
      /** The answer's body in OpenAI's format; not checked. */
      readonly body: Buffer;
    }
  /** The provider did not run the line, because its time was over or the job was cancelled. */
  | {
      readonly kind: 'unanswered';
      readonly wireId: string;
      readonly reason: 'expired' | 'cancelled';
    }
  /** The provider failed to run the line, without an HTTP status. */
  | { readonly kind: 'failed'; readonly wireId: string; readonly error: ProviderError };

/** What the result files held. */
export interface ResultTotals {
  readonly results: number;
  /** Lines that are not a result: no JSON, no wire id, too long, or cut off. */
  readonly malformed: number;
}

/** What a job left at the provider. */
export interface JobRemains {
  /** Null if no job was created. */
  readonly externalId: string | null;
  readonly remoteInputs: readonly string[];
  readonly resultFiles: readonly string[];
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the call as a failure. */
  readonly signal: AbortSignal;
}

/** Options of an upload. */
export interface UploadOptions extends CallOptions {
  /** A file that lines of the job name by its id; null if it does not exist any more. */
  openFile(fileId: string): Promise<LineFile | null>;
}

/** A file that a line names. */
export interface LineFile extends JobInput {
  /** As it was uploaded. */
  readonly filename: string;
}

/** Options of a download of results, with what a translated answer states. */
export interface ResultOptions extends CallOptions {
  readonly endpoint: string;
  /** The name of the model that the lines use. */
  readonly model: string;
  /** `created` of each answer, Unix s. The same for each download, so that it makes the same bytes. */
  readonly createdSec: number;
}

/** Options of a create. */
export interface SendOptions extends CallOptions {
  /** Time limit to the last byte of the answer, ms. Then the connection is reset. */
  readonly timeoutMs: number;
  /** Asked before the first byte, and before each piece of inline input. False ends the call. */
  readonly mayLeave: () => boolean;
}

/** Why a call has no value. */
export interface CallFailure extends ProviderError {
  /** HTTP status; null if there was no complete answer. */
  readonly status: number | null;
  /** The pause that the provider asks for, ms; null if it asks for none. */
  readonly retryAfterMs: number | null;
}

/** The end of a call whose success is the outcome `Success`. */
export type CallResult<Value, Success extends string, Outcome extends string> =
  | { readonly outcome: Success; readonly value: Value }
  | { readonly outcome: Exclude<Outcome, Success>; readonly failure: CallFailure };

/** The end of a call that may be repeated. */
export type IdempotentResult<Value> = CallResult<Value, 'ok', IdempotentOutcome>;

/** The end of a create. */
export type CreateResult = CallResult<CreatedJob, 'accepted', CreateOutcome>;
