import { setTimeout as delay } from 'node:timers/promises';
import type { Batch } from 'openai/resources/batches';
import { NightshiftError } from '../../core/errors';
import type { Config } from '../../platform/config';
import type { BatchService } from '../batches/batch-service';
import type { ProviderJob } from '../batches/provider-job';
import type { Reporter } from '../batches/reporter';

/** The model of the sample batch that runs at the simulated provider. */
const MODEL = 'nightshift-large';
const PROVIDER = 'simulated';
/** USD per million tokens: invented, in the order of what batch APIs cost. */
const PRICE = { input: 1.25, output: 5 };
/** How long a job of the provider stays in each of its states: long enough to be seen. */
const JOB_TIMES = { validating_ms: 3_000, running_ms: 10_000, finalizing_ms: 2_000 };
/** Local lines in flight: so few that the local model is still at work when the provider starts. */
const PERMITS = 4;
const CONFIG_TIMEOUT_MS = 5_000;
const POLL_MS = 500;
/** How many times the progress of a job is shown while it is in one state. */
const STEPS = 4;

/** Settings that delegate one model of the sample batch to the batch API of the simulator at `url`. */
export function delegatingSettings(url: string): Record<string, unknown> {
  const provider = { type: 'openai', url: `${url}/providers/openai/v1` };
  return {
    providers: { [PROVIDER]: { ...provider, poll_initial: '1s', poll_max: '1s' } },
    delegates: { [MODEL]: { provider: PROVIDER, price: PRICE } },
    concurrency: { global: PERMITS, per_model: PERMITS },
  };
}

/**
 * Makes jobs at the simulated provider take their time.
 * @throws config_invalid if the stack has no simulator; unavailable if it does not answer
 */
export async function slowDownProvider({ providers }: Pick<Config, 'providers'>): Promise<void> {
  const provider = providers[PROVIDER];
  if (provider === undefined) {
    throw new NightshiftError(
      'config_invalid',
      '--providers needs the simulator: remove model servers, providers and delegates from the settings',
    );
  }
  const response = await fetch(new URL('/simulator/providers/config', provider.url), {
    method: 'PUT',
    body: JSON.stringify(JOB_TIMES),
    signal: AbortSignal.timeout(CONFIG_TIMEOUT_MS),
  });
  if (response.ok) return;
  throw new NightshiftError('unavailable', `The simulator answered ${response.status}.`);
}

/** Where jobs are read from, and shown. */
export interface JobFollower {
  readonly service: Pick<BatchService, 'jobs' | 'retrieve'>;
  readonly reporter: Pick<Reporter, 'say'>;
  readonly signal: AbortSignal;
}

/**
 * Says what the jobs of a batch do at the provider beside what the batch has answered, until `signal` aborts. A look
 * that fails is skipped, because `watchBatch` reports a server that is away.
 */
export async function followJobs(id: string, follower: JobFollower): Promise<void> {
  const { service, reporter, signal } = follower;
  const shown = new Map<string, string>();
  while (!signal.aborted) {
    try {
      const jobs = await service.jobs(id, signal);
      const batch = await service.retrieve(id, { signal, retries: 0 });
      for (const job of jobs) {
        const stage = stageOf(job);
        if (shown.get(job.id) !== stage) reporter.say(jobLine(job, batch));
        shown.set(job.id, stage);
      }
    } catch {
      // The next look is soon.
    }
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Changes with each state of a job, and a few times while it is in one. */
function stageOf({ status, provider_status: theirs, request_counts: counts }: ProviderJob): string {
  const step = Math.floor((STEPS * counts.completed) / Math.max(1, counts.total));
  return `${status} ${theirs} ${step}`;
}

/** One state of a job, beside the answers of the whole batch. */
function jobLine(job: ProviderJob, { request_counts: all }: Batch): string {
  const { model, provider, external_id: id, provider_status: theirs, request_counts: own } = job;
  const place = id === null ? `${provider}: no job yet,` : `${provider}: job ${id}`;
  const isCollected = job.status === 'completed' || job.status === 'partial_complete';
  const state = isCollected ? 'answers collected' : (theirs ?? job.status);
  const answers = `the batch has ${all?.completed ?? 0} of ${all?.total ?? 0} answers`;
  return `${model} at ${place} ${state}, ${own.completed} of ${own.total} there; ${answers}`;
}

/** Rows of what each model has answered, where, and what it cost. @param jobs all jobs of the batch */
export function modelRows(batch: Batch, jobs: readonly ProviderJob[]): string[][] {
  const done = jobs.reduce((sum, { request_counts: { completed } }) => sum + completed, 0);
  const local = (batch.request_counts?.completed ?? 0) - done;
  return [
    ['where', 'answers', 'cost', 'job'],
    ['local model server', String(local), '-', '-'],
    ...jobs.map(({ model, provider, request_counts: counts, cost, external_id: id }) => [
      `${model} at ${provider}`,
      String(counts.completed),
      cost === null ? '-' : `$${cost.toFixed(4)}`,
      id ?? '-',
    ]),
  ];
}
