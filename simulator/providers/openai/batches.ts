import { randomUUID } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import type { InputError } from '../../../core/openai/input-errors';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { StoredFile } from '../file-store';
import { hasEnded, type JobProgress } from '../job-phases';
import type { JobOutcome, StoredJob } from '../job-store';
import type { ProviderSettings } from '../settings';
import type { ApiCall } from '../fake-api';
import { checkLines, readLines } from './input-lines';
import { runLines } from './run-lines';
import type { BatchRequest, OpenAiVariant } from './variant';

const MARKER = 'nightshift_job';
/** The name that inputs of our jobs have, for hosts that keep no metadata. */
const MARKED_NAME = /^(job_[0-9a-f]{32})\.jsonl$/;
const BYTES_PER_TOKEN = 4;

/** `POST /batches`. */
export function createBatch(call: ApiCall, host: OpenAiVariant): ProviderAnswer {
  const { state, nowMs } = call;
  const { lifetimeMs, ...request } = host.readCreate(call.body);
  const input = state.files.get(request.input_file_id, nowMs);
  if (input?.purpose !== host.purposes[0]) {
    throw new NightshiftError('invalid_request', 'The input file does not exist.', {
      param: 'input_file_id',
    });
  }
  const { linesNameUrl, namesUnrun } = host;
  const { lines, errors: faults } = checkLines(input.bytes, request.endpoint, linesNameUrl);
  const tokens = Math.ceil(input.bytes.length / BYTES_PER_TOKEN);
  const end = state.jobs.nextEnd();
  const quota = quotaErrors(call, tokens);
  const errors = [faults, quota, end === 'failed' ? askedErrors(state.settings) : []].find(
    ({ length }) => length > 0,
  );
  const job = state.jobs.add(
    {
      id: `batch_${randomUUID().replaceAll('-', '')}`,
      request,
      marker: request.metadata?.[MARKER] ?? MARKED_NAME.exec(input.name)?.[1] ?? null,
      end: errors === undefined ? end : 'failed',
      errors: errors ?? [],
      lines,
      tokens,
      run: (answered, progress, settings) =>
        runBatch(
          call,
          { request, input, lifetimeMs, namesUnrun },
          { answered, progress, settings },
        ),
    },
    nowMs,
  );
  return host.created(host.shown(job, call));
}

/** `GET /batches`. */
export function listBatches(call: ApiCall, host: OpenAiVariant): ProviderAnswer {
  const { nowMs, state } = call;
  const { list_lag_ms: lagMs } = state.settings;
  const listed = state.jobs.all(nowMs).filter(({ createdMs }) => createdMs + lagMs <= nowMs);
  return jsonAnswer(
    host.list(
      listed.map((job) => host.shown(job, call)),
      call,
    ),
  );
}

/** `GET /batches/{id}`. */
export function retrieveBatch(call: ApiCall, host: OpenAiVariant): ProviderAnswer {
  return jsonAnswer(host.shown(jobOf(call), call));
}

/** `POST /batches/{id}/cancel`. */
export function cancelBatch(call: ApiCall, host: OpenAiVariant): ProviderAnswer {
  const job = jobOf(call);
  const { phase } = job.progress;
  if (hasEnded(phase)) {
    throw new NightshiftError('conflict', `Cannot cancel a batch with status '${phase}'.`);
  }
  return jsonAnswer(host.shown(call.state.jobs.cancel(job, call.nowMs), call));
}

function jobOf({ id, nowMs, state }: ApiCall): StoredJob {
  const job = state.jobs.get(id, nowMs);
  if (job !== undefined) return job;
  throw new NightshiftError('not_found', `No batch found with id '${id}'.`);
}

function quotaErrors({ state, nowMs }: ApiCall, tokens: number): readonly InputError[] {
  const { max_enqueued_tokens: max } = state.settings;
  if (max === 0 || state.jobs.enqueuedTokens(nowMs) + tokens <= max) return [];
  const message = `Enqueued token limit reached in organization org-simulated. Limit: ${max} enqueued tokens. Please try again once some in_progress batches have been completed.`;
  return [{ code: 'token_limit_exceeded', message, param: null, line: null }];
}

/** The errors of a batch that fails because the settings say so. */
function askedErrors({ failed_lines: lines }: ProviderSettings): readonly InputError[] {
  const message = 'The settings of the simulator refuse this.';
  if (lines.length === 0) {
    return [{ code: 'unprocessable_file', message, param: null, line: null }];
  }
  return lines.map((line) => ({ code: 'invalid_request', message, param: 'body', line }));
}

function runBatch(
  { state, model }: ApiCall,
  batch: {
    readonly request: Omit<BatchRequest, 'lifetimeMs'>;
    readonly input: StoredFile;
    readonly lifetimeMs: number | null;
    readonly namesUnrun: boolean;
  },
  end: {
    readonly answered: number;
    readonly progress: JobProgress;
    readonly settings: ProviderSettings;
  },
): JobOutcome {
  const { request, input, lifetimeMs, namesUnrun } = batch;
  const { answered, progress, settings } = end;
  const { results, empty_error_file: hasEmptyFile } = settings;
  const reason = progress.phase === 'expired' ? 'expired' : 'cancelled';
  const { endpoint } = request;
  const lines = readLines(input.bytes);
  const run = namesUnrun ? lines : lines.slice(0, answered);
  const ends = runLines(run, { endpoint, answered, reason, model, results });
  const save = (kind: string, bytes: Buffer | null): string | null => {
    if (bytes === null) return null;
    const name = `${input.id}_${kind}.jsonl`;
    const file = { name, purpose: 'batch_output', bytes, createdMs: progress.sinceMs };
    return state.files.add(file, lifetimeMs).id;
  };
  const errors = ends.errors ?? (hasEmptyFile ? Buffer.alloc(0) : null);
  return {
    outputFile: save('output', ends.output),
    errorFile: save('error', errors),
    completed: ends.completed,
    failed: ends.failed,
    usage: ends.usage,
  };
}
