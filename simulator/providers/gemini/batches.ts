import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';
import { invalid } from '../../request';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import type { StoredFile } from '../file-store';
import { hasEnded } from '../job-phases';
import type { JobInput, StoredJob } from '../job-store';
import { batchOperation } from './batch-operation';
import { deleteResults, findFile, writeResults } from './files';
import { readJson } from '../json-payload';
import { linesOf, runLines } from './run-lines';

const NO_JSON = 'Invalid JSON payload received.';

const BYTES_PER_TOKEN = 4;
const DEFAULT_PAGE = 50;
const NAME = /^nightshift\.[\w.-]*\.(job_[0-9a-f]{32})$/;
const ID = 'batches/';

const schema = z.strictObject({
  batch: z.strictObject({
    displayName: z.string().min(1),
    inputConfig: z.strictObject({ fileName: z.string().regex(/^files\//) }),
    priority: z.union([z.string(), z.number()]).optional(),
  }),
});

/** `models.batchGenerateContent` with a file. */
export function createBatch(call: ApiCall): ProviderAnswer {
  const { id: model, state, nowMs } = call;
  const { batch } = readCreate(call.body);
  const input = findFile(batch.inputConfig.fileName, call);
  const tokens = Math.ceil((input?.bytes.length ?? 0) / BYTES_PER_TOKEN);
  const { max_enqueued_tokens: max } = state.settings;
  if (max > 0 && state.jobs.enqueuedTokens(nowMs) + tokens > max) {
    throw new NightshiftError('rate_limited', 'You exceeded your current quota.');
  }
  if (input === undefined) throw invalid('batch.input_config.file_name', 'File does not exist.');
  const end = state.jobs.nextEnd();
  const message = 'The settings of the simulator refuse this.';
  const job = state.jobs.add(
    {
      id: ID + randomUUID().replaceAll('-', ''),
      request: { ...batch, model },
      marker: NAME.exec(batch.displayName)?.[1] ?? null,
      end,
      errors:
        end === 'failed' ? [{ code: 'invalid_request', message, param: null, line: null }] : [],
      lines: linesOf(input.bytes).length,
      tokens,
      run: runOf(call, input),
    },
    nowMs,
  );
  return jsonAnswer(batchOperation(job, state.settings, nowMs));
}

/** `batches.list`, newest first. */
export function listBatches({ query, nowMs, state }: ApiCall): ProviderAnswer {
  const { list_lag_ms: lagMs, max_page: cap } = state.settings;
  const listed = state.jobs
    .all(nowMs)
    .filter(({ id, createdMs }) => id.startsWith(ID) && createdMs + lagMs <= nowMs);
  const size = Number(query.get('pageSize') ?? DEFAULT_PAGE);
  const start = Number(query.get('pageToken') ?? 0);
  const page = listed.slice(start, start + Math.min(size, cap));
  const next = start + page.length;
  return jsonAnswer({
    ...(page.length === 0
      ? {}
      : { operations: page.map((job) => batchOperation(job, state.settings, nowMs)) }),
    ...(next < listed.length ? { nextPageToken: String(next) } : {}),
  });
}

/** `batches.get`. */
export function retrieveBatch(call: ApiCall): ProviderAnswer {
  return jsonAnswer(batchOperation(batchOf(call), call.state.settings, call.nowMs));
}

/** `batches.cancel`. */
export function cancelBatch(call: ApiCall): ProviderAnswer {
  const job = batchOf(call);
  if (hasEnded(job.progress.phase)) {
    throw new NightshiftError('invalid_request', 'Batch is already in a terminal state.');
  }
  call.state.jobs.cancel(job, call.nowMs);
  return jsonAnswer({});
}

/** `batches.delete`. A batch that runs is not stopped by it. Results go with their batch. */
export function deleteBatch(call: ApiCall): ProviderAnswer {
  const { id, outcome } = batchOf(call);
  if (outcome?.outputFile != null) deleteResults(outcome.outputFile, call);
  call.state.jobs.delete(id);
  return jsonAnswer({});
}

/** An expired batch has no results. */
function runOf(call: ApiCall, input: StoredFile): JobInput['run'] {
  const modelName = call.id.replace(/^[^/]*\//, '');
  return (answered, { phase, sinceMs }, { results }) => {
    const isKept = phase !== 'expired';
    const lines = linesOf(input.bytes).slice(0, isKept ? answered : 0);
    const { bytes, completed, failed } = runLines(lines, {
      name: modelName,
      model: call.model,
      results,
    });
    const outputFile = isKept ? writeResults(randomUUID().slice(0, 8), bytes, call, sinceMs) : null;
    return { outputFile, errorFile: null, completed, failed, usage: null };
  };
}

function batchOf({ id, nowMs, state }: ApiCall): StoredJob {
  const job = state.jobs.get(ID + id, nowMs);
  if (job === undefined) {
    throw new NightshiftError('not_found', `Requested entity was not found: ${ID}${id}`);
  }
  return job;
}

function readCreate(body: Buffer): z.output<typeof schema> {
  const parsed = schema.safeParse(readJson(body, NO_JSON));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw invalid(at, `Invalid value at '${at}': ${issue?.message ?? 'invalid'}`);
}
