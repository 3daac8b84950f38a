import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { fitsModelNames, TEMPORAL_LIMITS } from '../../core/batch/temporal-bounds';
import { NightshiftError } from '../../core/errors';
import {
  createInputErrors,
  type InputError,
  type InputErrors,
} from '../../core/openai/input-errors';
import type { LineRules } from '../../core/openai/line-check';
import type { ScanSink } from '../../core/openai/line-scanner';
import type { Config } from '../../platform/config-schema';
import type { ObjectStore } from '../../storage/object-store';
import { earlierResult, writeErrors, writePlan, type IngestResult } from './outcome';
import { createPlanCollector, type PlanCollector } from './plan-collector';
import { IngestAttempt, MAX_DEATHS } from './attempt';
import { ScanGate } from './scan-gate';
import { scanInput } from './scan-input';
import type { Heartbeat } from '../runtime/heartbeat';
import { withHeartbeat } from '../runtime/with-heartbeat';
import type { IngestInput } from '../contract';

/**
 * How many models that no worker can send get a plan, so that they can be looked up again. A client
 * invents names for nothing, and each plan costs objects and an activity.
 */
const MAX_UNDECIDED = 20;
/** Heartbeats are held back for at most 2 s. */
const ANNOUNCE_MS = 2_500;

export type { IngestResult } from './outcome';

/** What ingestion needs of the house. */
export interface IngestDeps {
  readonly store: ObjectStore;
  readonly batches: BatchInputs;
  /** Whether some backend serves `model`; always true behind a global gateway. Answers from memory. */
  isRouted(model: string): boolean;
  /** Brings the memory of `isRouted` up to date. @throws postgres_unavailable */
  refreshRoutes?(): Promise<void>;
  /** Counts the batch's requests among those of its tenant; false where they are too many. */
  enqueue?(batchId: string, requests: number): Promise<boolean>;
  /** In which a heartbeat reaches the server. */
  readonly announceMs?: number;
  readonly limits: Config['limits'];
  readonly batch: Config['batch'];
}

/** Where a batch's row says what to read. */
export interface BatchInputs {
  /** Null where there is no such batch. */
  input(batchId: string): Promise<BatchInput | null>;
}

/** The part of a batch's row that ingestion reads. */
export interface BatchInput {
  readonly endpoint: string;
  /** Null where there was no usable file when the batch was created. */
  readonly inputObjectKey: string | null;
  readonly inputBytes: number | null;
}

/**
 * The activity that turns an input file into a plan (execution §1). It streams the input once and
 * leaves either plans and, last, `model_map.json`, or `errors.json`; whichever is there already is its
 * answer, so that it can run any number of times, also twice at once. Fails with `input_missing` where
 * the row names an object that is gone, `not_found` without a row, `plan_unreadable`.
 */
export function createIngest(deps: IngestDeps): (input: IngestInput) => Promise<IngestResult> {
  const gate = new ScanGate();
  return async ({ batchId, decidesLater }) => {
    const maxUndecided = decidesLater === true ? MAX_UNDECIDED : 0;
    const attempt = new IngestAttempt(Context.current().info);
    const details = (bytes: number) => ({ bytes, ...attempt.details });
    return withHeartbeat(
      async (heartbeat) => {
        try {
          const earlier = await earlierResult(deps.store, batchId);
          return (
            earlier ?? (await ingest({ deps, batchId, heartbeat, attempt, gate, maxUndecided }))
          );
        } catch (error) {
          attempt.leave();
          throw error;
        }
      },
      { details, beatsOnFailure: true },
    );
  };
}

/** One attempt, and what it shares with others of its process. */
interface Ingestion {
  readonly deps: IngestDeps;
  readonly batchId: string;
  readonly heartbeat: Heartbeat;
  readonly attempt: IngestAttempt;
  readonly gate: ScanGate;
  /** How many models without a route get a plan. */
  readonly maxUndecided: number;
}

async function ingest(ingestion: Ingestion): Promise<IngestResult> {
  const { deps, batchId, attempt } = ingestion;
  const { store, limits } = deps;
  if (attempt.deaths >= MAX_DEATHS) return writeErrors(store, batchId, [unprocessable()]);
  const input = await deps.batches.input(batchId);
  if (input === null) throw new NightshiftError('not_found', `there is no batch ${batchId}`);
  const key = input.inputObjectKey;
  if (key === null) return writeErrors(store, batchId, [unusableFile()]);
  const size = (await store.head(key))?.size;
  if (size === undefined) throw inputMissing(batchId);
  if (size > limits.max_file_bytes)
    return writeErrors(store, batchId, [fileTooLarge(size, limits)]);

  const source = { key, endpoint: input.endpoint };
  let scanned = await scan(ingestion, source);
  if (await hasNewRoutes(deps, scanned)) scanned = await scan(ingestion, source);
  const { plan, errors, requests } = scanned;
  if (!fitsModelNames(plan.modelNames())) errors.add(modelNamesTooLong());
  if (errors.count > 0) return writeErrors(store, batchId, errors.list());
  if (deps.enqueue !== undefined && !(await deps.enqueue(batchId, requests))) {
    return writeErrors(store, batchId, [tooManyEnqueued(requests, limits)]);
  }
  return writePlan(store, batchId, { plan, lineCount: requests });
}

/** What one pass over the input found. */
interface Scanned {
  readonly plan: PlanCollector;
  readonly errors: InputErrors;
  readonly requests: number;
}

async function scan(
  ingestion: Ingestion,
  { key, endpoint }: { readonly key: string; readonly endpoint: string },
): Promise<Scanned> {
  const { deps, batchId, heartbeat, maxUndecided } = ingestion;
  const errors = createInputErrors();
  const isRouted = (model: string) => deps.isRouted(model);
  const plan = createPlanCollector({ isRouted, maxUndecided });
  const rules = scanRules(deps, endpoint);
  const sink: ScanSink = {
    request: (request) => {
      if (errors.count === 0) plan.add(request);
    },
    fault: (error) => errors.add(error),
  };
  const { requests } = await inTurn(ingestion, () =>
    scanInput({ stream: deps.store.stream(key), rules, heartbeat, sink }),
  ).catch((error: unknown) => {
    throw isMissing(error) ? inputMissing(batchId) : error;
  });
  heartbeat.check();
  return { plan, errors, requests };
}

/**
 * Asks what other workers can send before models without a route are given up. True: one of those
 * that got no plan has a route by now, and the file must be read again.
 */
async function hasNewRoutes(deps: IngestDeps, { plan, errors }: Scanned): Promise<boolean> {
  const { planned, unplanned } = plan.unknown;
  if (errors.count > 0 || planned.size + unplanned.size === 0) return false;
  await deps.refreshRoutes?.();
  return [...unplanned.keys()].some((model) => deps.isRouted(model));
}

/** A suspect waits until no other file is read here, and until the server knows that it is its turn. */
function inTurn<T>(
  { deps, attempt, heartbeat, gate }: Ingestion,
  scan: () => Promise<T>,
): Promise<T> {
  const { isSuspect: alone } = attempt;
  const { signal } = heartbeat;
  return gate.run({ alone, signal }, async () => {
    if (!alone) return scan();
    attempt.readsAlone();
    heartbeat.beat();
    await sleep(deps.announceMs ?? ANNOUNCE_MS, undefined, { signal }).catch(() => undefined);
    heartbeat.check();
    return scan();
  });
}

function scanRules({ limits, batch }: IngestDeps, endpoint: string) {
  const rules: LineRules = {
    endpoint,
    moderationDefaultModel: batch.moderation_default_model,
  };
  return {
    ...rules,
    maxLineBytes: limits.max_line_bytes,
    maxRequests: limits.max_requests,
    maxInputs: limits.max_inputs,
    singleModel: batch.single_model_batches,
    json: { maxDepth: limits.max_json_depth, maxTokens: limits.max_json_tokens },
  };
}

function isMissing(error: unknown): boolean {
  return error instanceof NightshiftError && error.code === 'object_missing';
}

function inputMissing(batchId: string): NightshiftError {
  return new NightshiftError('input_missing', `the input object of ${batchId} is gone`);
}

function unprocessable(): InputError {
  const message =
    `The server went down ${MAX_DEATHS} times while it read this file alone, so the file is not read ` +
    'again. Look at its longest and most deeply nested lines, or split it into several.';
  return { code: 'unprocessable_file', message, param: null, line: null };
}

function unusableFile(): InputError {
  const message =
    'The file `input_file_id` was not found when the batch was created: it does not exist, was ' +
    'deleted, or has expired. Upload it again.';
  return { code: 'invalid_request', message, param: 'file_id', line: null };
}

function tooManyEnqueued(requests: number, { tenant }: Config['limits']): InputError {
  const most = tenant.max_enqueued_requests ?? 0;
  const message =
    `Enqueued request limit reached: the file has ${requests} requests, and you may have ${most} ` +
    'waiting in all batches together. Please try again once some batches have ended.';
  return { code: 'token_limit_exceeded', message, param: null, line: null };
}

function modelNamesTooLong(): InputError {
  const message =
    `The names of all models in a batch can have ${TEMPORAL_LIMITS.modelNamesBytes} bytes together; ` +
    'here they have more. Split the file into several, or use shorter names.';
  return { code: 'too_many_models', message, param: 'body.model', line: null };
}

function fileTooLarge(size: number, limits: Config['limits']): InputError {
  const message =
    `The input file of a batch can have ${limits.max_file_bytes} bytes; this one has ${size}. ` +
    'Split it into several.';
  return { code: 'file_too_large', message, param: null, line: null };
}
