import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { Pool } from 'pg';
import pino from 'pino';
import type { ExecuteChunkResult } from '../../../activities/contract';
import { createCollectJob } from '../../../activities/delegate/collect-job';
import type {
  CollectedJob,
  CollectJobInput,
  JobInput,
  SettlePartInput,
  SubmittedJob,
  WatchedJob,
  WatchJobInput,
} from '../../../activities/delegate/contract';
import type { DelegateDeps, OpenProvider } from '../../../activities/delegate/deps';
import type { CollectedLines } from '../../../activities/delegate/observer';
import { sha256Hex } from '../../../activities/delegate/open-parts';
import { LineFiles } from '../../../activities/delegate/line-files';
import { createSettlePart } from '../../../activities/delegate/settle-part';
import { createSubmitJob } from '../../../activities/delegate/submit-job';
import { createWatchJob } from '../../../activities/delegate/watch-job';
import { jobId, wireId } from '../../../core/delegation/job-ids';
import { ConcurrencyLimit } from '../../../core/async/concurrency-limit';
import { planKey } from '../../../core/names/object-names';
import { encodePlanEntry, PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import type { ProviderConfig } from '../../../platform/config-providers';
import { configSchema } from '../../../platform/config-schema';
import type { LineResult } from '../../../providers/provider';
import type { ObjectStore } from '../../../storage/object-store';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import { createFilesystemJournal } from '../../../storage/journal/filesystem-journal';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import type { ProgressReporter } from '../../../storage/postgres/progress';
import type { JobRow } from '../../../storage/postgres/provider-jobs/job-row';
import { createProviderJobs } from '../../../storage/postgres/provider-jobs/repository';
import { insertBatch } from '../../support/rows';
import { FakeLease, type ResultLine } from '../execute/chunk-world';
import { MemoryProvider } from './memory-provider';
import { readResults, readStatuses } from './read-journal';

const INPUT_KEY = 'files/t/input';
const NONCE = 'aaaaaaaaaaaaaaaa';
const HOUR_MS = 3_600_000;

type SettleDeps = Parameters<typeof createSettlePart>[0];

/** What a test may change about a {@link JobWorld}. */
export interface JobWorldOptions {
  readonly lines?: number;
  /** Whether no other program uses the account. */
  readonly isExclusive?: boolean;
  /** Settings of the provider. */
  readonly settings?: Record<string, unknown>;
  /** The `body` of a line. */
  readonly body?: (line: number) => string;
}

/** One job of a batch: real rows, journal and files, and a provider in memory. */
export interface JobWorld {
  readonly provider: MemoryProvider;
  readonly store: ObjectStore;
  readonly lease: FakeLease;
  readonly deps: DelegateDeps;
  readonly input: JobInput;
  readonly collected: CollectedLines[];
  /** Lines of the jobs that were given up. */
  readonly abandoned: number[];
  submit(over?: Partial<JobInput>, env?: MockActivityEnvironment): Promise<SubmittedJob>;
  watch(over?: Partial<WatchJobInput>, env?: MockActivityEnvironment): Promise<WatchedJob>;
  collect(over?: Partial<CollectJobInput>, env?: MockActivityEnvironment): Promise<CollectedJob>;
  /** Ends the lines that are open. */
  settle(over?: Partial<SettlePartInput>): Promise<ExecuteChunkResult>;
  /** The result lines of answers, by line number. */
  results(): Promise<Map<number, ResultLine>>;
  row(): Promise<JobRow>;
  /** The answer of the provider to a line. */
  answer(line: number, over?: Partial<LineResult & { kind: 'answer' }>): LineResult;
  /** Statuses in the journal, by line number; each frame once. Without kept answers. */
  journalled(): Promise<[line: number, status: number][]>;
  /** The answers that the journal keeps for lines without another one. */
  kept(): Promise<[line: number, status: number][]>;
  close(): Promise<void>;
}

/** Opens a {@link JobWorld} whose job covers all `lines`. */
export async function jobWorld(pool: Pool, options: JobWorldOptions = {}): Promise<JobWorld> {
  const { lines = 10, settings = {} } = options;
  const path = await mkdtemp(join(tmpdir(), 'nightshift-job-'));
  const logger = pino({ level: 'silent' });
  const store = await openFilesystemStore({ path });
  const journal = createFilesystemJournal({ path, store, logger });
  const provider = new MemoryProvider();
  const lease = new FakeLease();
  const collected: CollectedLines[] = [];
  const abandoned: number[] = [];
  const nowSec = Math.floor(Date.now() / 1000);
  const times = { created_at: nowSec, expires_at: nowSec + 86_400 };
  const batchId = await insertBatch(pool, { status: 'in_progress', ...times });
  const { config, far } = configOf(settings);
  const jobs = createProviderJobs(pool);
  const deps: DelegateDeps = {
    ...{ store, journal, jobs, config, logger, batches: createBatchRepository(pool) },
    progress: { begin: () => Promise.resolve(lease) } as unknown as ProgressReporter,
    provider: () => openedProvider(far, provider, options.isExclusive ?? false),
    observer: {
      ...{ called: () => undefined, adopted: () => undefined, jobEnded: () => undefined },
      abandoned: ({ lines }) => void abandoned.push(lines),
      collected: (job) => void collected.push(job),
    },
    ...{ parts: new ConcurrencyLimit(4), requestsEnded: () => 0 },
    lineFiles: new LineFiles(store),
    drain: new AbortController().signal,
  };
  const offsets = await writeInput(store, batchId, { lines, ...options });
  const input = inputOf(batchId, lines);
  const id = input.job.jobId;
  const run = <I, O>(
    create: (deps: DelegateDeps) => (input: I) => Promise<O>,
    over: Partial<I> = {},
    env = new MockActivityEnvironment(),
  ): Promise<O> => env.run(create(deps), { ...input, ...over } as I);
  return {
    ...{ provider, store, lease, deps, input, collected, abandoned },
    submit: (over, env) => run(createSubmitJob, over, env),
    watch: (over, env) => run(createWatchJob, over, env),
    collect: (over, env) => run(createCollectJob, over, env),
    settle: (over) => run(settlePartOf, { from: 0, to: lines, ...over }),
    results: () => readResults({ store, journal }, { batchId, offsets }),
    row: async () => {
      const row = await jobs.find(id);
      if (row === null) throw new Error('the job has no row');
      return row;
    },
    answer: (line, over) => answerOf(id, line, over),
    journalled: () => readStatuses(journal, { batchId, offsets, kept: false }),
    kept: () => readStatuses(journal, { batchId, offsets, kept: true }),
    close: async () => {
      await journal.close();
      await store.close();
      await rm(path, { recursive: true, force: true });
    },
  };
}

function openedProvider(
  config: ProviderConfig,
  api: MemoryProvider,
  isExclusive: boolean,
): OpenProvider {
  return { name: 'far', config, account: api.account, settleMs: 0, isExclusive, api };
}

function settlePartOf(deps: DelegateDeps) {
  return createSettlePart({ ...deps, worker: 'w' } as unknown as SettleDeps);
}

function inputOf(batchId: string, lines: number): JobInput {
  const identity = { batchId, safeModel: 'm', from: 0, generation: 0, ordinal: 0 };
  const id = jobId(identity, sha256Hex);
  return {
    ...{ batchId, planNonce: NONCE, tenant: 't', endpoint: '/v1/chat/completions' },
    ...{ inputKey: INPUT_KEY, model: 'm', safe: 'm', provider: 'far' },
    deadlineMs: Date.now() + 24 * HOUR_MS,
    giveUpAtMs: Date.now() + 20 * HOUR_MS,
    harvestGraceMs: 60_000,
    job: { jobId: id, from: 0, to: lines, generation: 0, ordinal: 0 },
  };
}

function answerOf(
  id: string,
  line: number,
  over: Partial<LineResult & { kind: 'answer' }> = {},
): LineResult {
  return {
    ...{ kind: 'answer', wireId: wireId(id, line), status: 200, requestId: null },
    body: Buffer.from(`{"model":"m-far","line":${line}}`),
    ...over,
  };
}

function configOf(settings: Record<string, unknown>) {
  const config = configSchema.parse({
    providers: { far: { type: 'openai', url: 'http://127.0.0.1:1', ...settings } },
    delegates: { m: { provider: 'far', model: 'm-far', price: { input: 1, output: 2 } } },
  });
  const far = config.providers['far'];
  if (far === undefined) throw new Error('the settings have no provider');
  return { config, far };
}

/** Lines `l0`, `l1`, …; the plan is in input order. Returns the offset of each line. */
async function writeInput(
  store: ObjectStore,
  batchId: string,
  { lines, body = () => '{"model":"m"}' }: JobWorldOptions & { lines: number },
): Promise<number[]> {
  const plan = Buffer.alloc(lines * PLAN_ENTRY_BYTES);
  const offsets: number[] = [];
  const texts: string[] = [];
  let offset = 0;
  for (let i = 0; i < lines; i++) {
    const text = `{"custom_id":"l${i}","method":"POST","url":"/v1/chat/completions","body":${body(i)}}\n`;
    const entry = { offset, length: text.length - 1, prefixHash: 0 };
    encodePlanEntry(plan, i * PLAN_ENTRY_BYTES, entry);
    offsets.push(offset);
    texts.push(text);
    offset += text.length;
  }
  await store.putIfAbsent(INPUT_KEY, Buffer.from(texts.join('')));
  await store.putIfAbsent(planKey(batchId, NONCE, 'm'), plan);
  return offsets;
}
