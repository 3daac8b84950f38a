import { createReadStream, createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type OpenAI from 'openai';
import type { Batch, BatchCreateParams } from 'openai/resources/batches';
import { NightshiftError } from '../core/errors';
import { processEnvironment } from '../platform/config';
import { hasEnded } from './batches/exit-codes';
import type { DemoAccess } from './demo-access';
import { openOpenAi } from './openai-client';
import { createProgress, type ProgressScreen } from './progress';

export interface DemoBatchOptions {
  /** Base URL of the API. */
  readonly api: string;
  /** How the API knows who is asking. */
  readonly access: DemoAccess;
  /** JSONL file of requests. */
  readonly input: string;
  /** Where all of them go. */
  readonly endpoint: string;
  /** Folder that gets the result files. */
  readonly results: string;
  readonly screen: ProgressScreen;
  readonly signal: AbortSignal;
  /** Hears the batch's id as soon as there is one. */
  onCreated(batchId: string): void;
}

/** The batch at its end, and where its results were put. */
export interface DemoBatchResult {
  readonly batch: Batch;
  readonly tookMs: number;
  /** Result files on this disk; `null` where the batch has none. */
  readonly outputFile: string | null;
  readonly errorFile: string | null;
}

const POLL_INTERVAL_MS = 250;

/**
 * Uploads, creates, polls and downloads one batch with the official SDK, as any user would.
 *
 * @throws internal where the batch ended other than `completed`
 */
export async function runBatch(options: DemoBatchOptions): Promise<DemoBatchResult> {
  const { api: baseURL, access, input, signal } = options;
  const client = openOpenAi({
    ...{ baseUrl: baseURL, apiKey: access.key, headers: access.headers },
    ...{ env: processEnvironment(), takesEnvironment: false },
  });
  const startedAtMs = performance.now();
  const file = await client.files.create({ file: createReadStream(input), purpose: 'batch' });
  signal.throwIfAborted();
  const created = await client.batches.create({
    input_file_id: file.id,
    endpoint: options.endpoint as BatchCreateParams['endpoint'],
    completion_window: '24h',
  });
  options.onCreated(created.id);
  const batch = await untilEnded(client, created, options);
  const tookMs = performance.now() - startedAtMs;
  if (batch.status !== 'completed') throw endedAs(batch);
  mkdirSync(options.results, { recursive: true, mode: 0o700 });
  const save = (id: string | undefined, kind: string): Promise<string | null> =>
    id === undefined
      ? Promise.resolve(null)
      : download(client, id, join(options.results, `${batch.id}_${kind}.jsonl`));
  const outputFile = await save(batch.output_file_id ?? undefined, 'output');
  const errorFile = await save(batch.error_file_id ?? undefined, 'error');
  return { batch, tookMs, outputFile, errorFile };
}

async function untilEnded(
  client: OpenAI,
  created: Batch,
  { screen, signal }: DemoBatchOptions,
): Promise<Batch> {
  const progress = createProgress(screen, performance.now());
  let batch = created;
  for (;;) {
    const { total = 0, completed = 0, failed = 0 } = batch.request_counts ?? {};
    progress.show({ status: batch.status, total, completed, failed }, performance.now());
    if (hasEnded(batch)) break;
    await delay(POLL_INTERVAL_MS, undefined, { signal });
    batch = await client.batches.retrieve(batch.id);
  }
  progress.end();
  return batch;
}

async function download(client: OpenAI, id: string, target: string): Promise<string> {
  const { body } = await client.files.content(id);
  if (body === null) throw new NightshiftError('internal', `the file ${id} came without a body`);
  await pipeline(Readable.fromWeb(body), createWriteStream(target));
  return target;
}

function endedAs(batch: Batch): NightshiftError {
  const problems = (batch.errors?.data ?? []).slice(0, 10).map(({ line, message }) => {
    const where = line === null || line === undefined ? '' : `line ${line}: `;
    return `\n  ${where}${message ?? 'unknown'}`;
  });
  const message = `the batch ${batch.id} ended as ${batch.status}${problems.join('')}`;
  return new NightshiftError('internal', message);
}
