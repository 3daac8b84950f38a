import { mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Batch } from 'openai/resources/batches';
import { processEnvironment } from '../../platform/config';
import { createBatchService } from '../batches/batch-service';
import { fetchResults, type FetchedResults } from '../batches/fetch-results';
import { interruptsFrom } from '../batches/interrupts';
import { createReporter } from '../batches/reporter';
import type { ResultTargets } from '../batches/result-targets';
import { submitBatch } from '../batches/submit-batch';
import { watchBatch } from '../batches/watch-batch';
import type { ProviderJob } from '../batches/provider-job';
import type { DemoAccess } from './demo-access';
import { followJobs } from './demo-providers';

/** The batch of a demo, and the stack that runs it. */
export interface DemoBatchOptions {
  /** Base URL of the API. */
  readonly api: string;
  /** How the API identifies the caller. */
  readonly access: DemoAccess;
  /** JSONL file of requests. */
  readonly input: string;
  /** Endpoint of every request in the file. */
  readonly endpoint: string;
  /** Folder that gets the result files. */
  readonly results: string;
  /** Stops the demo. */
  readonly signal: AbortSignal;
  /** Called with the batch's id as soon as the batch exists. */
  onCreated(batchId: string): void;
  /** Whether to show the jobs of the batch at providers. */
  readonly showsJobs?: boolean;
}

/** The batch at its end, with its results on this disk. */
export interface DemoBatchResult {
  readonly batch: Batch;
  readonly results: FetchedResults;
  /** Empty unless jobs were to be shown. */
  readonly jobs: readonly ProviderJob[];
  /** From the start of the upload to the last result. */
  readonly elapsedMs: number;
}

const POLL_MS = 250;
/** Enough for the supervisor to restart a dead API, which takes seconds. */
const PATIENCE_MS = 60_000;

/**
 * Runs one batch as `nightshift run` does: upload, create, watch, download. Returns `null` if `signal`
 * aborts before the batch has ended.
 *
 * @throws unavailable if the API does not answer in time, and its refusals
 */
export async function runDemoBatch(options: DemoBatchOptions): Promise<DemoBatchResult | null> {
  const { input, endpoint, signal } = options;
  const startedAtMs = performance.now();
  const client = clientOf(options);
  const created = await submitBatch(input, { endpoint, window: '24h' }, client);
  options.onCreated(created.id);
  const watch = { ...client, io: { pollMs: POLL_MS }, patienceMs: PATIENCE_MS };
  const follow = new AbortController();
  const following =
    options.showsJobs === true
      ? followJobs(created.id, { ...client, signal: follow.signal })
      : null;
  const { batch } = await watchBatch(created, watch).finally(() => follow.abort());
  await following;
  if (signal.aborted) return null;
  const jobs = following === null ? [] : await client.service.jobs(batch.id, signal);
  mkdirSync(options.results, { recursive: true, mode: 0o700 });
  const results = await fetchResults(batch, {
    ...client,
    io: { stdout: process.stdout },
    targets: targetsIn(options.results, batch.id),
    force: true,
  });
  return { batch, results, jobs, elapsedMs: performance.now() - startedAtMs };
}

/** With `isNamedByUser: false` no secrets of the environment are sent: they are for other servers. */
function clientOf({ api, access, signal }: DemoBatchOptions) {
  const env = processEnvironment();
  const { key, headers } = access;
  return {
    service: createBatchService({
      ...{ baseUrl: api, apiKey: key, headers, env },
      isNamedByUser: false,
      followUpFlags: '',
    }),
    interrupts: interruptsFrom(signal),
    reporter: createReporter(process.stderr, env),
  };
}

function targetsIn(folder: string, batchId: string): ResultTargets {
  const target = (kind: string): string => shortPath(join(folder, `${batchId}_${kind}.jsonl`));
  return { output: target('output'), errors: target('error'), audio: null };
}

/** Relative to the current folder if the file is below it. */
function shortPath(file: string): string {
  const fromHere = relative('.', file);
  return fromHere.startsWith('..') ? file : fromHere;
}
