import { randomUUID } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import type { SimulatorSettings } from '../../settings';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import { hasEnded, type JobProgress } from '../job-phases';
import type { JobOutcome, StoredJob } from '../job-store';
import { outputFile } from '../result-files';
import type { ProviderSettings } from '../settings';
import { readCreate, type BatchRequest } from './create-request';
import { hasResults, messageBatch } from './message-batch';
import { errored, runMessage } from './run-message';

const BYTES_PER_TOKEN = 4;
/** The letter and the part of the job's id with which our ids of lines begin. */
const MARKER_LENGTH = 13;
const MAX_PAGE = 1_000;
const DEFAULT_PAGE = 20;
const FOREIGN = {
  custom_id: 'someone-elses-line',
  result: { type: 'canceled' },
};

/** `POST /v1/messages/batches`. */
export function createBatch(call: ApiCall): ProviderAnswer {
  const { state, nowMs, body, model } = call;
  const version = versionOf(call);
  const requests = readCreate(body);
  const tokens = Math.ceil(body.length / BYTES_PER_TOKEN);
  const { max_enqueued_tokens: max } = state.settings;
  if (max > 0 && state.jobs.enqueuedTokens(nowMs) + tokens > max) {
    throw new NightshiftError('rate_limited', 'Too many tokens are in the processing queue.');
  }
  const end = state.jobs.nextEnd();
  const failed =
    end === 'failed' ? failedLines(state.settings, requests.length) : new Set<number>();
  const job = state.jobs.add(
    {
      id: `msgbatch_${randomUUID().replaceAll('-', '')}`,
      request: {},
      marker: requests[0]?.custom_id.slice(0, MARKER_LENGTH) ?? null,
      // A batch does not fail as a whole.
      end: end === 'failed' ? 'completed' : end,
      errors: [],
      lines: requests.length,
      tokens,
      run: (answered, progress, settings) => {
        const run = { requests, failed, version, model, answered };
        const { lines, succeeded } = runBatch(run, progress);
        return outcomeOf(call, { lines, succeeded, progress, settings });
      },
    },
    nowMs,
  );
  return shown(job, call);
}

/** `GET /v1/messages/batches`. */
export function listBatches(call: ApiCall): ProviderAnswer {
  versionOf(call);
  const { nowMs, state, query } = call;
  const { list_lag_ms: lagMs, max_page: most } = state.settings;
  const listed = state.jobs.all(nowMs).filter(({ createdMs }) => createdMs + lagMs <= nowMs);
  const limit = Number(query.get('limit') ?? DEFAULT_PAGE);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new NightshiftError('invalid_request', `limit: must be from 1 to ${MAX_PAGE}`);
  }
  const start = pageStart(listed, query.get('after_id'));
  const page = listed.slice(start, start + Math.min(limit, most));
  return jsonAnswer({
    data: page.map((job) => viewOf(job, call)),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: start + page.length < listed.length,
  });
}

/** `GET /v1/messages/batches/{id}`. */
export function retrieveBatch(call: ApiCall): ProviderAnswer {
  return shown(jobOf(call), call);
}

/** `POST /v1/messages/batches/{id}/cancel`. */
export function cancelBatch(call: ApiCall): ProviderAnswer {
  const job = jobOf(call);
  if (hasEnded(job.progress.phase)) {
    throw new NightshiftError('invalid_request', `Batch ${job.id} has already ended.`);
  }
  return shown(call.state.jobs.cancel(job, call.nowMs), call);
}

/** `GET /v1/messages/batches/{id}/results`. */
export function batchResults(call: ApiCall): ProviderAnswer {
  const { state, nowMs } = call;
  const job = jobOf(call);
  const file = hasResults(job, state.settings, nowMs)
    ? state.files.get(job.outcome?.outputFile ?? '', nowMs)
    : undefined;
  if (file === undefined) {
    throw new NightshiftError('invalid_request', `Batch ${job.id} has no available results.`);
  }
  return { status: 200, contentType: 'application/x-jsonl', bytes: file.bytes };
}

/** `DELETE /v1/messages/batches/{id}`. */
export function deleteBatch(call: ApiCall): ProviderAnswer {
  const { state } = call;
  const { id, progress, outcome } = jobOf(call);
  if (!hasEnded(progress.phase)) {
    throw new NightshiftError('invalid_request', `Batch ${id} has not finished processing.`);
  }
  if (outcome?.outputFile != null) state.files.delete(outcome.outputFile);
  state.jobs.delete(id);
  return jsonAnswer({ id, type: 'message_batch_deleted' });
}

function jobOf(call: ApiCall): StoredJob {
  versionOf(call);
  const job = call.state.jobs.get(call.id, call.nowMs);
  if (job !== undefined) return job;
  throw new NightshiftError('not_found', `No batch found with id ${call.id}.`);
}

/** Every call names the version of the API. @throws invalid_request */
function versionOf({ headers }: ApiCall): string {
  const version = headers['anthropic-version'];
  if (typeof version === 'string' && version !== '') return version;
  throw new NightshiftError('invalid_request', 'anthropic-version: header is required');
}

function pageStart(jobs: readonly StoredJob[], after: string | null): number {
  if (after === null) return 0;
  const start = jobs.findIndex(({ id }) => id === after) + 1;
  if (start > 0) return start;
  throw new NightshiftError('invalid_request', `after_id: no batch ${after}`);
}

function shown(job: StoredJob, call: ApiCall): ProviderAnswer {
  return jsonAnswer(viewOf(job, call));
}

function viewOf(job: StoredJob, { state, nowMs, baseUrl }: ApiCall): object {
  return messageBatch(job, state.settings, { nowMs, root: baseUrl });
}

/** The requests that fail because the settings say so, by index. Without any, all do. */
function failedLines({ failed_lines: lines }: ProviderSettings, total: number): Set<number> {
  const all = Array.from({ length: total }, (_, index) => index);
  return new Set(lines.length === 0 ? all : lines.map((line) => line - 1));
}

function runBatch(
  run: {
    readonly requests: readonly BatchRequest[];
    readonly failed: ReadonlySet<number>;
    readonly version: string;
    readonly model: SimulatorSettings;
    readonly answered: number;
  },
  { phase }: JobProgress,
): { readonly lines: readonly string[]; readonly succeeded: number } {
  const unrun = { type: phase === 'expired' ? 'expired' : 'canceled' };
  let succeeded = 0;
  const lines = run.requests.map(({ custom_id: id, params }, index) => {
    const refused = run.failed.has(index);
    const ran = () =>
      refused
        ? errored(500, 'The settings of the simulator refuse this.')
        : runMessage(params, run.version, run.model);
    const result = index < run.answered ? ran() : unrun;
    if ('type' in result && result.type === 'succeeded') succeeded++;
    return JSON.stringify({ custom_id: id, result });
  });
  return { lines, succeeded };
}

function outcomeOf(
  { state }: ApiCall,
  end: {
    readonly lines: readonly string[];
    readonly succeeded: number;
    readonly progress: JobProgress;
    readonly settings: ProviderSettings;
  },
): JobOutcome {
  const { lines, succeeded, progress, settings } = end;
  const bytes = outputFile(lines, settings.results, JSON.stringify(FOREIGN));
  const file = { name: 'results.jsonl', purpose: 'batch_output', bytes };
  const { id } = state.files.add({ ...file, createdMs: progress.sinceMs }, null);
  const failed = lines.length - succeeded;
  return { outputFile: id, errorFile: null, completed: succeeded, failed, usage: null };
}
