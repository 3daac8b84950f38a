import { ApplicationFailure, Context } from '@temporalio/activity';
import type {
  BatchActivities,
  BatchSettings,
  ExecuteChunkInput,
  ExecuteChunkResult,
  FinalizeInput,
  FinalizeResult,
  IngestInput,
  ModelRoute,
  PlannedModel,
  PlannedOrInvalid,
  RowState,
  SmallBatchActivities,
  SmallBatchInput,
  SmallBatchResult,
} from '../../activities/contract';
import type { BatchStatus, StopCause } from '../../core/batch/status';
import type { ExitReason } from '../../core/chunks/exit-reason';
import type { DelegateActivities } from '../../activities/delegate/contract';
import { isLegalTransition } from '../support/transitions';
import { isTerminal } from '../../core/batch/status';
import { EXEC_QUEUE } from '../../workflows/contract';
import { FakeDelegation } from './fake-delegation';

export interface FakeBatchOptions {
  readonly models?: readonly { model: string; entries: number }[];
  readonly invalid?: boolean;
  /** Models that no worker can send when the file is read. */
  readonly undecided?: readonly string[];
  /** Whether a worker can send one of them when the workflow asks again. */
  readonly routedLater?: (input: ExecuteChunkInput, batch: FakeBatch) => boolean | Promise<boolean>;
  /** Counted from when the workflow opens the batch, so that a slow start does not shorten it. */
  readonly expiresInMs?: number;
  /** The rate that chunks report. A low rate makes chunks small. */
  readonly ratePerSec?: number;
  readonly settings?: Partial<BatchSettings>;
  /** The task queue of its chunks; by default the one that the test's worker serves. */
  readonly queue?: string;
  /** The route that the workflow gets when it looks the model up again; by default the planned one. */
  readonly routeOf?: (batch: FakeBatch) => ModelRoute | null;
  /** Runs before a chunk is answered. Its result overrides members of the chunk's result. */
  readonly onChunk?: (
    input: ExecuteChunkInput,
    batch: FakeBatch,
  ) => Promise<void | Partial<ExecuteChunkResult>>;
  /** Models that go through a provider. */
  readonly delegated?: Readonly<Record<string, FakeDelegation>>;
  /** The namespace has the search attribute `BatchProviders`. */
  readonly showsProviders?: boolean;
  readonly onIngest?: (batch: FakeBatch) => Promise<void>;
  readonly onFinalize?: (batch: FakeBatch) => FinalizeResult | null | Promise<null>;
  /** The input is small: one activity may do all of it. Its result, or how it fails; by default the whole batch. */
  readonly small?: (input: SmallBatchInput, batch: FakeBatch) => Promise<Partial<SmallBatchResult>>;
  /** Whether the row says that an earlier run found every line settled. */
  readonly answered?: boolean;
  /** Ingestion and finalization write their phases: always, or only if the row can be written in time. */
  readonly announces?: 'always' | 'late';
}

const SETTINGS: BatchSettings = {
  lanesPerModel: 4,
  heartbeatTimeoutMs: 5_000,
  cancelGraceMs: 0,
  expiryGraceMs: 0,
  finalizeWindowMs: 60_000,
  historyEvents: null,
};

/**
 * A batch whose activities work in memory: a row with the rules of the real one, and a set of answered
 * lines. Tests read from it what the workflow did.
 */
export class FakeBatch {
  readonly options: FakeBatchOptions;
  status: BatchStatus = 'validating';
  stopCause: StopCause | null = null;
  readonly transitions: BatchStatus[] = ['validating'];
  readonly answered = new Map<string, number>();
  readonly chunks: ExecuteChunkInput[] = [];
  readonly smallRuns: SmallBatchInput[] = [];
  readonly poisoned: string[] = [];
  /** Ranges that were ended as `model_not_found`. */
  readonly ended: ExecuteChunkInput[] = [];
  /** The workflow's details when the scenario queried them. */
  details = '';
  /** How often the workflow has looked up a route. */
  routeLookUps = 0;
  /** For each attempt of the waiting chunk: the heartbeat details of the attempt before. */
  readonly notes: unknown[] = [];
  finalized: { nonce: string | null; cause: StopCause | null }[] = [];
  readonly #createdMs = Date.now();
  #expiresAtMs: number | null = null;

  constructor(options: FakeBatchOptions = {}) {
    this.options = options;
  }

  get models(): readonly { model: string; entries: number }[] {
    return this.options.models ?? [{ model: 'alpha', entries: 40 }];
  }

  activities(): BatchActivities & DelegateActivities & SmallBatchActivities {
    return {
      ...this.#delegation(),
      openBatch: () =>
        Promise.resolve({
          ...this.#row(),
          tenant: 'default',
          endpoint: '/v1/chat/completions',
          inputKey: 'files/t/input',
          createdAtMs: this.#createdMs,
          expiresAtMs: (this.#expiresAtMs ??= Date.now() + (this.options.expiresInMs ?? 3_600_000)),
          settings: { ...SETTINGS, ...this.options.settings },
          ...(this.options.answered === true ? { answered: true } : {}),
          ...(this.options.announces === undefined ? {} : { announces: true }),
          ...(this.options.small === undefined ? {} : { small: { requestTimeoutMs: 1_000 } }),
        }),
      projectStatus: ({ status }) => {
        if (this.stopCause === null) this.#move(status);
        return Promise.resolve(this.#row());
      },
      claimStop: ({ cause }) => {
        if (!isTerminal(this.status)) this.claim(cause);
        return Promise.resolve(this.#row());
      },
      ingest: (input) => this.#ingest(input),
      executeChunk: (input) => this.#execute(input),
      runSmallBatch: (input) => this.#runSmall(input),
      endUnrouted: (input) => this.#endUnrouted(input),
      routeModel: () => Promise.resolve(this.#route()),
      awaitRoute: () => {
        const route = this.#route();
        return route === null ? Promise.reject(notRouted()) : Promise.resolve(route);
      },
      awaitReleased: () => Promise.resolve(),
      finalize: (input) => this.#finalize(input),
      recordUnfinalized: () => Promise.resolve(this.#row()),
    };
  }

  /** Claims the stop as the API's cancel does. */
  claim(cause: StopCause): void {
    if (this.stopCause !== null) return;
    this.stopCause = cause;
    if (cause === 'cancelled') this.#move('cancelling');
  }

  answer(input: ExecuteChunkInput, from: number, to: number): void {
    for (let position = from; position < to; position++) {
      const key = `${input.safe}/${position}`;
      this.answered.set(key, (this.answered.get(key) ?? 0) + 1);
    }
  }

  /** Activities that find the provider of their model. */
  #delegation(): DelegateActivities {
    const of = (model: string) =>
      (this.options.delegated?.[model] ?? new FakeDelegation()).activities(this);
    return {
      openParts: (input) => of(input.model).openParts(input),
      submitJob: (input) => of(input.model).submitJob(input),
      watchJob: (input) => of(input.model).watchJob(input),
      collectJob: (input) => of(input.model).collectJob(input),
      settlePart: (input) => of(input.model).settlePart(input),
    };
  }

  #row(): RowState {
    return { found: true, status: this.status, stopCause: this.stopCause };
  }

  #route(): ModelRoute | null {
    this.routeLookUps++;
    const { routeOf, queue = EXEC_QUEUE } = this.options;
    return routeOf === undefined ? { queue, requestTimeoutMs: 1_000 } : routeOf(this);
  }

  #move(to: BatchStatus): void {
    if (!isLegalTransition(this.status, to)) return;
    this.status = to;
    this.transitions.push(to);
  }

  async #ingest({ decidesLater, announces }: IngestInput): Promise<PlannedOrInvalid> {
    await this.options.onIngest?.(this);
    if (this.options.invalid === true) return { kind: 'invalid', errorCount: 1 };
    const models: PlannedModel[] = this.models.map(({ model, entries }) => ({
      model,
      safe: model,
      entries,
      queue: this.options.queue ?? EXEC_QUEUE,
      requestTimeoutMs: 1_000,
      ...(decidesLater && this.options.undecided?.includes(model) ? { undecided: true } : {}),
      ...(this.options.delegated?.[model] === undefined
        ? {}
        : { delegate: this.options.delegated[model].plan }),
    }));
    const lineCount = models.reduce((sum, model) => sum + model.entries, 0);
    const plan = { kind: 'planned' as const, nonce: 'n0', lineCount, models, unroutedLines: 0 };
    const shown = this.options.showsProviders === true ? { ...plan, showsProviders: true } : plan;
    if (announces !== true || this.options.announces !== 'always') return shown;
    if (this.stopCause === null) this.#move('in_progress');
    return { ...shown, row: this.#row() };
  }

  /** As far as `options.small` says. */
  async #runSmall(input: SmallBatchInput): Promise<SmallBatchResult> {
    this.smallRuns.push(input);
    const special = (await this.options.small?.(input, this)) ?? {};
    return { plan: await this.#ingest({ batchId: input.batchId }), ...special };
  }

  /** The result of the only chunk of a small batch, of which it has answered the first `next` lines. */
  chunkOfSmall(next: number, left: ExitReason): Partial<SmallBatchResult> {
    const [model = { model: 'alpha' }] = this.models;
    for (let position = 0; position < next; position++) {
      const key = `${model.model}/${position}`;
      this.answered.set(key, (this.answered.get(key) ?? 0) + 1);
    }
    this.#move('in_progress');
    const counts = { next, completed: next, failed: 0, answered: next };
    const rest = { worker: 'w1', ratePerSec: null, p95Ms: null, left, stopCause: this.stopCause };
    return { chunk: { ...counts, ...rest } };
  }

  /** The result of a small batch that was answered and ended. */
  async endOfSmall(): Promise<Partial<SmallBatchResult>> {
    const entries = this.models[0]?.entries ?? 0;
    const chunk = this.options.invalid === true ? {} : this.chunkOfSmall(entries, 'done');
    if (this.options.invalid !== true) this.#move('finalizing');
    const nonce = this.options.invalid === true ? null : 'n0';
    return { ...chunk, ended: await this.#finalize({ nonce, cause: null }) };
  }

  /** The end that the last chunk has written. */
  endOfLastChunk(): Promise<FinalizeResult> {
    this.#move('finalizing');
    return this.#finalize({ nonce: 'n0', cause: null });
  }

  async #execute(input: ExecuteChunkInput) {
    this.chunks.push(input);
    const special = (await this.options.onChunk?.(input, this)) ?? {};
    const stopped = Context.current().cancellationSignal.aborted;
    // A stopped chunk has done half of its lines.
    const done = stopped ? input.from + Math.floor((input.to - input.from) / 2) : input.to;
    const next = special.next ?? done;
    if (input.poison === true) this.poisoned.push(`${input.safe}/${input.from}`);
    this.answer(input, input.from, next);
    return {
      next,
      completed: next - input.from,
      failed: 0,
      answered: next - input.from,
      worker: 'w1',
      ratePerSec: this.options.ratePerSec ?? 1_000,
      p95Ms: 5,
      left: stopped ? ('stopped' as const) : ('done' as const),
      stopCause: this.stopCause,
      ...special,
    };
  }

  async #endUnrouted(input: ExecuteChunkInput): Promise<ExecuteChunkResult | null> {
    if ((await this.options.routedLater?.(input, this)) === true) return null;
    this.ended.push(input);
    this.answer(input, input.from, input.to);
    const { from, to } = input;
    const counts = { next: to, completed: 0, failed: to - from, answered: to - from };
    const rest = { worker: 'w1', ratePerSec: null, p95Ms: null, left: 'done' as const };
    return { ...counts, ...rest, stopCause: this.stopCause };
  }

  get expiresAtMs(): number {
    return this.#expiresAtMs ?? Infinity;
  }

  async #finalize(input: Omit<FinalizeInput, 'batchId'>): Promise<FinalizeResult> {
    if (input.announces === true && this.stopCause === null) this.#move('finalizing');
    this.finalized.push({ nonce: input.nonce, cause: input.cause });
    const special = await this.options.onFinalize?.(this);
    if (special != null) return special;
    const total = this.models.reduce((sum, model) => sum + model.entries, 0);
    const end = this.options.invalid === true ? 'failed' : (this.stopCause ?? 'completed');
    this.#move(this.stopCause ?? end);
    return {
      kind: 'done',
      status: this.stopCause ?? end,
      counts: { total, completed: this.answered.size, failed: 0 },
      outputFileId: 'file-o',
      errorFileId: null,
    };
  }
}

/** Resolves when the activity is cancelled; sends heartbeats until then. */
export async function untilCancelled(): Promise<void> {
  const context = Context.current();
  const heart = setInterval(() => context.heartbeat(), 100);
  await context.cancelled.catch(() => undefined);
  clearInterval(heart);
}

export function systemFailure(): ApplicationFailure {
  return ApplicationFailure.create({ message: 'gone', type: 'object_corrupt', nonRetryable: true });
}

/** The failure of a chunk whose worker dies, without waiting for the heartbeat timeout. */
export function crash(): ApplicationFailure {
  return ApplicationFailure.create({ message: 'crashed', type: 'crash' });
}

/** The failure of the real activity while no worker can send requests of the model. */
function notRouted(): ApplicationFailure {
  return ApplicationFailure.create({ message: 'no route', type: 'not_routed' });
}

/** Fails a chunk as if it waited, by default for a permit, or, with `died`, as if its worker died. */
export function waitOrDie(batch: FakeBatch, died: boolean, type: ExitReason = 'no_permit'): never {
  const { info, heartbeat } = Context.current();
  batch.notes.push(info.heartbeatDetails ?? null);
  const deaths = batch.notes.length - 1;
  heartbeat({ deaths, holding: true });
  if (!died) heartbeat({ deaths, holding: false });
  throw ApplicationFailure.create({ message: 'waits', type, nextRetryDelay: 100 });
}
