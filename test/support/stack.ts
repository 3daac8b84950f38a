import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { ensureBuilt } from '../../cli/prepare.js';
import { packageRoot } from '../../platform/package-root';
import type { StoreKind } from '../../embedded/s3/store-kind';
import { freePort } from './free-port';
import { runningConfig, startOthers, type StackProcesses } from './stack-processes';
import { until } from './until';
import { PROCESSES, STORE } from './variant';

/** The whole product as its users start it: `nightshift dev` and everything it starts. */
export interface TestStack extends StackProcesses {
  /** Of its own API. */
  readonly baseUrl: string;
  /** Base URL for interactive calls; null without an embedded gateway. */
  readonly gatewayUrl: string | null;
  /** Uses all APIs in turn. */
  readonly client: OpenAI;
  readonly dataDir: string;
  readonly temporalAddress: string;
  /** Process id of the supervisor, which the others are children of. */
  readonly pid: number;
  /** The configuration that its processes run with. */
  readonly configFile: string;
  /** Path on this host of an object, or of a folder of objects. */
  objectPath(...key: string[]): string;
  /** Sends SIGTERM and waits for the end; resolves with the exit code. */
  stop(): Promise<number | null>;
  /** Resolves when the supervisor has ended, for whatever reason. */
  readonly ended: Promise<void>;
  /** Starts again on the same data directory and the same port. */
  restart(): Promise<TestStack>;
  /** Removes the data directory; the stack must have stopped. */
  remove(): void;
}

export interface StackOptions {
  /** Configuration as an object; written as JSON, which is YAML. */
  readonly config?: Record<string, unknown>;
  readonly simulator?: boolean;
  /** Where it keeps objects; by default what the run says ({@link STORE}), unless `config` names a store. */
  readonly store?: StoreKind;
  /** How many APIs and how many workers; by default what the run says ({@link PROCESSES}). */
  readonly processes?: number;
  readonly dataDir?: string;
  /** A free port if left out. */
  readonly port?: number;
  /** Environment variables of its processes, in addition to those of this one. */
  readonly env?: Readonly<Record<string, string>>;
}

/** First start: Temporal, Postgres with initdb, migrations, API and worker. */
export const STACK_START_MS = 120_000;

function namesStore({ object_store: settings }: Record<string, unknown> = {}): boolean {
  return typeof settings === 'object' && settings !== null && 'type' in settings;
}

/** Tests kill and freeze the worker by its process id, so it is one process, on any machine, unless a test says otherwise. */
function oneWorkerProcess({ worker }: Record<string, unknown> = {}): Record<string, string> {
  const isSet = typeof worker === 'object' && worker !== null && 'processes' in worker;
  return isSet ? {} : { NIGHTSHIFT__WORKER__PROCESSES: '1' };
}

export async function startStack(options: StackOptions = {}): Promise<TestStack> {
  // Before the start: the build must not run with the variables of `options.env`.
  ensureBuilt();
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'nightshift-stack-'));
  // Postgres runs as another user when we are root.
  chmodSync(dataDir, 0o711);
  const port = options.port ?? (await freePort());
  const configFile = `${dataDir}.yaml`;
  writeFileSync(configFile, JSON.stringify(options.config ?? {}));
  const args = [
    join(packageRoot(), 'cli', 'nightshift.js'),
    'dev',
    ...['--data-dir', dataDir, '--port', String(port), '--config', configFile],
    ...(options.simulator === true ? [] : ['--no-simulator']),
    ...(namesStore(options.config) ? [] : ['--store', options.store ?? STORE]),
  ];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...oneWorkerProcess(options.config), ...options.env },
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
  const ready = await until(
    () => {
      if (child.exitCode !== null) throw new Error(`stack ended early:\n${output.stderr}`);
      return /nightshift ready api=(\S+) temporal=(\S+).* pid=/.exec(output.stdout);
    },
    STACK_START_MS,
    `the ready line; so far:\n${output.stderr}`,
    50,
  );
  const [line, baseUrl = '', temporalAddress = ''] = ready;
  const gatewayUrl = / gateway=(\S+)/.exec(line)?.[1] ?? null;
  const { processes: count = PROCESSES, env = {} } = options;
  const { stopOthers, ...processes } = await startOthers({ dataDir, baseUrl, count, env });
  return {
    ...{ baseUrl, gatewayUrl, dataDir, temporalAddress, ended, ...processes },
    configFile: runningConfig(dataDir),
    client: new OpenAI({
      ...{ baseURL: baseUrl, apiKey: 'unused', maxRetries: 5 },
      ...(count === 1 ? {} : { fetch: processes.fetch }),
    }),
    pid: child.pid ?? 0,
    objectPath: (...key) => join(dataDir, ...objectFolder(dataDir), ...key),
    stop: async () => {
      await stopOthers();
      return stop(child);
    },
    restart: async () => {
      // After a kill of the supervisor they still run, with the ports of the previous start.
      await stopOthers();
      return startStack({ ...options, dataDir, port });
    },
    remove: () => {
      rmSync(dataDir, { recursive: true, force: true });
      rmSync(configFile, { force: true });
    },
  };
}

/** The folder of the objects in a data directory: versitygw, too, keeps each object as a file under its key. */
function objectFolder(dataDir: string): string[] {
  const ofBucket = ['s3', 'objects', 'nightshift'];
  return existsSync(join(dataDir, ...ofBucket)) ? ofBucket : ['objects', 'objects'];
}

async function stop(child: ChildProcess): Promise<number | null> {
  child.kill('SIGTERM');
  await until(() => child.exitCode !== null || child.signalCode !== null, 60_000, 'the end');
  return child.exitCode;
}

/** Lines of a chat batch, all for the model `m` unless `model` names others. */
export function chatLines(count: number, model: (i: number) => string = () => 'm'): string {
  let text = '';
  for (let i = 0; i < count; i++) {
    const body = { model: model(i), messages: [{ role: 'user', content: `question ${i}` }] };
    text += `${JSON.stringify({ custom_id: `c-${i}`, method: 'POST', url: '/v1/chat/completions', body })}\n`;
  }
  return text;
}

export interface ResultLine {
  readonly id: string;
  readonly custom_id: string;
  readonly response: {
    status_code: number;
    request_id: string;
    body: Record<string, unknown>;
  } | null;
  readonly error: { code: string; message: string } | null;
}

/** Uploads `text` and creates a batch of it. */
export async function submit(
  client: OpenAI,
  text: string,
  window: string = '24h',
): Promise<OpenAI.Batches.Batch> {
  const file = await upload(client, text);
  return createBatch(client, file.id, window);
}

export async function upload(client: OpenAI, text: string): Promise<OpenAI.FileObject> {
  return client.files.create({
    file: await OpenAI.toFile(Buffer.from(text), 'input.jsonl'),
    purpose: 'batch',
  });
}

export async function createBatch(
  client: OpenAI,
  fileId: string,
  window: string,
): Promise<OpenAI.Batches.Batch> {
  return client.batches.create({
    input_file_id: fileId,
    endpoint: '/v1/chat/completions',
    completion_window: window as '24h',
  });
}

const TERMINAL = ['completed', 'failed', 'expired', 'cancelled'];

/** Polls until the batch has ended. Calls that fail because a part is down are repeated. */
export async function untilTerminal(
  client: OpenAI,
  id: string,
  timeoutMs = 120_000,
): Promise<OpenAI.Batches.Batch> {
  return until(
    async () => {
      const batch = await client.batches.retrieve(id).catch(() => null);
      return batch !== null && TERMINAL.includes(batch.status) ? batch : null;
    },
    timeoutMs,
    `the end of ${id}`,
    100,
  );
}

/** Parsed lines of a result file; none if there is no file. */
export async function resultLines(
  client: OpenAI,
  fileId: string | null | undefined,
): Promise<ResultLine[]> {
  if (fileId == null) return [];
  const text = await (await client.files.content(fileId)).text();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ResultLine);
}
