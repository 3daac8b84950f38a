import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import pino from 'pino';
import { createExecuteChunk } from '../../../activities/execute/execute-chunk';
import { ChunkLedger } from '../../../activities/execute/chunk-ledger';
import type { ExecuteDeps } from '../../../activities/execute/deps';
import type { ExecuteChunkInput, ExecuteChunkResult } from '../../../activities/contract';
import type { StopCause } from '../../../core/batch/status';
import type { FrameKind } from '../../../core/journal/frame';
import { FRAME_KIND } from '../../../core/journal/frame';
import { inputFilesKey, planKey } from '../../../core/names/object-names';
import { encodeInputFiles, type InputFiles } from '../../../core/plan/input-files';
import { encodePlanEntry, PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import { createMemoryBudget } from '../../../inference/memory-budget';
import {
  createPermitDispatcher,
  type PermitDispatcher,
} from '../../../inference/permit-dispatcher';
import { createRegistry } from '../../../inference/registry';
import type { Config } from '../../../platform/config-schema';
import { configSchema } from '../../../platform/config-schema';
import { createFilesystemJournal } from '../../../storage/journal/filesystem-journal';
import type { JournalStore } from '../../../storage/journal/journal-store';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import type { ObjectStore } from '../../../storage/object-store';
import type { ChunkLease } from '../../../storage/postgres/chunk-lease';
import type { ProgressReporter } from '../../../storage/postgres/progress';
import type { Answer, LocalServer } from '../../inference/local-server';
import { startLocalServer } from '../../inference/local-server';

export const BATCH_ID = `batch_${'5e'.repeat(16)}`;
export const NONCE = 'aaaaaaaaaaaaaaaa';
export const INPUT_KEY = 'files/t/input';

interface RequestTally {
  completed: number;
  failed: number;
}

/** A lease in memory. The test sets what PostgreSQL would return. */
export class FakeLease implements ChunkLease {
  lost = false;
  stopCause: StopCause | null = null;
  terminal = false;
  frozen = false;
  unconfirmed = false;
  released: ({ to: number } & RequestTally) | null = null;
  /** The counts that each progress tick would write into the row. */
  followed: Readonly<RequestTally> | null = null;
  #listener: () => void = () => undefined;

  maySend(): boolean {
    return !this.lost && !this.terminal && !this.frozen;
  }
  trackCounts(counts: Readonly<RequestTally>): void {
    this.followed = counts;
  }
  onChange(listener: () => void): void {
    this.#listener = listener;
  }
  release(final: { to: number; completed: number; failed: number }): Promise<void> {
    this.released = final;
    return Promise.resolve();
  }
  tell(change: Partial<Pick<FakeLease, 'lost' | 'stopCause' | 'terminal'>>): void {
    Object.assign(this, change);
    this.#listener();
  }
}

export interface ChunkWorld {
  readonly server: LocalServer;
  readonly store: ObjectStore;
  readonly journal: JournalStore;
  readonly lease: FakeLease;
  readonly drain: AbortController;
  readonly config: Config;
  /** The dependencies of the activity, before the test replaces any. */
  readonly deps: ExecuteDeps;
  /** Runs one attempt. Pass `env` to cancel it. */
  run(
    over?: Partial<ExecuteChunkInput>,
    env?: MockActivityEnvironment,
  ): Promise<ExecuteChunkResult>;
  /** Kind, status and payload of each answer in the journal, by line number. */
  answers(): Promise<Map<number, { kind: FrameKind; status: number; line: ResultLine }>>;
  /** Retry frames in the journal, in the order of their segments. */
  retries(): Promise<{ line: number; tries: number; notBeforeMs: number | undefined }[]>;
  /** Byte offset of a line. */
  offsetOf(line: number): number;
  /** How many workers died while only this line was in flight, according to the journal. */
  deathsAlone(line: number): Promise<number>;
  /** Logged warnings, in order. */
  readonly warnings: readonly string[];
  /** Chunks that wait for a permit. */
  waiting(): number;
  /** Number of requests begun, including those that never reached the server. */
  tries(): number;
  /** Custom ids that the server has seen, in order. */
  seen(): string[];
  close(): Promise<void>;
}

export interface ResultLine {
  readonly id: string;
  readonly custom_id: string;
  readonly response: { status_code: number; body: Record<string, unknown> } | null;
  readonly error: { code: string } | null;
}

export interface ChunkWorldOptions {
  readonly passThrough?: ExecuteDeps['passThrough'];
  /** Replaces single dependencies of the activity. */
  readonly replace?: (deps: ExecuteDeps) => Partial<ExecuteDeps>;
  /** Further settings of the gateway. */
  readonly gateway?: Record<string, unknown>;
  /** Bodies of the lines, instead of the usual ones. */
  readonly bodies?: readonly object[];
  /** Uploaded files that lines name, by id. */
  readonly files?: Readonly<Record<string, { readonly filename: string; readonly bytes: Buffer }>>;
}

/** Real files, journal, gateway and permits, as in a worker. Rows and Temporal are fakes. */
export async function chunkWorld(
  lines: number,
  answer: Answer,
  settings: Record<string, unknown> = {},
  options: ChunkWorldOptions = {},
): Promise<ChunkWorld> {
  const path = await mkdtemp(join(tmpdir(), 'nightshift-chunk-'));
  const server = await startLocalServer(answer);
  const config = configOf(server.url, settings, options.gateway);
  const store = await openFilesystemStore({ path });
  const warnings: string[] = [];
  const write = (line: string) => warnings.push((JSON.parse(line) as { msg: string }).msg);
  const logger = pino({ level: 'warn' }, { write });
  const journal = createFilesystemJournal({ path, store, logger });
  const input = { store, journal, lines, offsets: await writeInput(store, lines, options.bodies) };
  if (options.files !== undefined) await writeFiles(store, options.files);
  const lease = new FakeLease();
  const drain = new AbortController();
  let tries = 0;
  const chunks: Promise<unknown>[] = [];
  const registry = createRegistry(config);
  const deps: ExecuteDeps = {
    ...{ store, journal, registry, config, logger, ...sharedDeps(config) },
    passThrough: options.passThrough ?? (() => Promise.reject(new Error('not asked for'))),
    progress: { begin: () => Promise.resolve(lease) } as unknown as ProgressReporter,
    observer: countingObserver(() => void tries++),
    drain: drain.signal,
  };
  const execute = createExecuteChunk({ ...deps, ...options.replace?.(deps) });
  return {
    ...{ server, store, journal, lease, drain, config, deps, warnings },
    run: (over, env = new MockActivityEnvironment()) => {
      const chunk: Promise<ExecuteChunkResult> = env.run(execute, chunkInput(lines, over));
      chunks.push(chunk);
      return chunk;
    },
    answers: () => readAnswers(input),
    retries: () => readRetries(input),
    offsetOf: (line) => input.offsets[line]!,
    deathsAlone: (line) => readDeathsAlone(input, line),
    waiting: () => (deps.dispatcher as PermitDispatcher).stats().waiting,
    tries: () => tries,
    seen: () => server.received.map(({ body }) => (JSON.parse(body.toString()) as { n: string }).n),
    close: async () => {
      // A failed test may have left chunks running.
      lease.tell({ lost: true });
      drain.abort();
      await server.close();
      await Promise.allSettled(chunks);
      await journal.close();
      await registry.close();
      await store.close();
      await rm(path, { recursive: true, force: true });
    },
  };
}

function configOf(
  url: string,
  settings: Record<string, unknown>,
  gateway: Record<string, unknown> = {},
): Config {
  return configSchema.parse({
    global_inference_gateway: {
      url,
      request_timeout: '2s',
      max_retries: 2,
      initial_backoff: '5ms',
      max_backoff: '20ms',
      ...gateway,
    },
    batch: { cancel_grace: '5s' },
    ...settings,
  });
}

/** What all chunks of a worker share. */
function sharedDeps({
  concurrency,
  fairness,
}: Config): Pick<ExecuteDeps, 'routes' | 'dispatcher' | 'memory' | 'worker'> {
  return {
    routes: { routeOf: () => null },
    dispatcher: createPermitDispatcher({
      global: concurrency.global,
      perModel: concurrency.per_model,
      adaptive: concurrency.adaptive,
      fairness,
      onGuardTripped: (error) => {
        throw error;
      },
    }),
    memory: createMemoryBudget(concurrency.in_flight_bytes),
    worker: 'w1',
  };
}

function countingObserver(requestStarted: () => void): ExecuteDeps['observer'] {
  return {
    requestStarted,
    chunkEnded: () => undefined,
    requestEnded: () => undefined,
    requestQueued: () => undefined,
    requestDropped: () => undefined,
    requestRetried: () => undefined,
    requestSettled: () => undefined,
    served: () => undefined,
    tokens: () => undefined,
  };
}

function chunkInput(lines: number, over: Partial<ExecuteChunkInput> = {}): ExecuteChunkInput {
  return {
    batchId: BATCH_ID,
    planNonce: NONCE,
    tenant: 'default',
    endpoint: '/v1/chat/completions',
    inputKey: INPUT_KEY,
    model: 'm',
    safe: 'm',
    from: 0,
    to: lines,
    deadlineMs: Date.now() + 3_600_000,
    boxMs: 20_000,
    p95Ms: null,
    priority: 3,
    ...over,
  };
}

/** Lines named `l0`, `l1`, …; the plan is in input order. */
async function writeInput(
  store: ObjectStore,
  lines: number,
  bodies?: ChunkWorldOptions['bodies'],
): Promise<number[]> {
  const plan = Buffer.alloc(lines * PLAN_ENTRY_BYTES);
  const offsets: number[] = [];
  let text = '';
  for (let i = 0; i < lines; i++) {
    const body = bodies === undefined ? `{"model":"m", "n":"l${i}"}` : JSON.stringify(bodies[i]);
    const line = `{"custom_id":"l${i}","method":"POST","url":"/v1/chat/completions","body":${body}}`;
    encodePlanEntry(plan, i * PLAN_ENTRY_BYTES, {
      offset: Buffer.byteLength(text),
      length: Buffer.byteLength(line),
      prefixHash: 0,
    });
    offsets.push(Buffer.byteLength(text));
    text += `${line}\n`;
  }
  await store.putIfAbsent(INPUT_KEY, Buffer.from(text));
  await store.putIfAbsent(planKey(BATCH_ID, NONCE, 'm'), plan);
  return offsets;
}

async function writeFiles(
  store: ObjectStore,
  files: NonNullable<ChunkWorldOptions['files']>,
): Promise<void> {
  const listed: InputFiles = new Map(
    Object.entries(files).map(([id, { filename, bytes }]) => {
      return [id, { key: `files/t/${id}`, bytes: bytes.length, filename }];
    }),
  );
  for (const [id, { bytes }] of Object.entries(files)) {
    await store.putIfAbsent(`files/t/${id}`, bytes);
  }
  await store.putIfAbsent(inputFilesKey(BATCH_ID, NONCE), encodeInputFiles(listed));
}

/** The input file of the chunk, and the journal of its answers. */
interface JournaledInput {
  readonly store: ObjectStore;
  readonly journal: JournalStore;
  readonly lines: number;
  /** Byte offset of each line. */
  readonly offsets: readonly number[];
}

const SCOPE = { batchId: BATCH_ID, safeModel: 'm' };

async function readAnswers({
  store,
  journal,
  lines,
  offsets,
}: JournaledInput): ReturnType<ChunkWorld['answers']> {
  const found: Awaited<ReturnType<ChunkWorld['answers']>> = new Map();
  for await (const frame of journal.scan(SCOPE, { from: 0, to: lines })) {
    if (frame.header.kind === FRAME_KIND.retry) continue;
    const end = frame.position + frame.byteLength;
    const bytes = await store.read(frame.objectKey, {
      from: end - frame.header.payloadLength,
      to: end,
    });
    found.set(offsets.indexOf(frame.header.offset), {
      kind: frame.header.kind,
      status: frame.header.status,
      line: JSON.parse(bytes.toString()) as ResultLine,
    });
  }
  return found;
}

async function readRetries({
  journal,
  lines,
  offsets,
}: JournaledInput): ReturnType<ChunkWorld['retries']> {
  const found = [];
  for await (const { header, notBeforeMs } of journal.scan(SCOPE, { from: 0, to: lines })) {
    if (header.kind !== FRAME_KIND.retry) continue;
    found.push({ line: offsets.indexOf(header.offset), tries: header.tries, notBeforeMs });
  }
  return found;
}

async function readDeathsAlone(
  { store, journal, lines }: JournaledInput,
  line: number,
): Promise<number> {
  const plan = await store.read(planKey(BATCH_ID, NONCE, 'm'), {
    from: 0,
    to: lines * PLAN_ENTRY_BYTES,
  });
  const ledger = new ChunkLedger({ from: 0, to: lines }, plan);
  for await (const ref of journal.scan(SCOPE, { from: 0, to: lines })) ledger.addFrame(ref);
  return ledger.crashesAlone(line);
}
