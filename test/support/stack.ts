import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { ensureBuilt } from '../../cli/prepare.js';
import { packageRoot } from '../../platform/package-root';
import { freePort } from './free-port';
import { until } from './until';

/** The whole product as its users start it: `nightshift dev` and everything it starts. */
export interface TestStack {
  readonly baseUrl: string;
  readonly client: OpenAI;
  readonly dataDir: string;
  readonly temporalAddress: string;
  /** Process id of the supervisor, which the others are children of. */
  readonly pid: number;
  /** Process id of a running part, as the stack's own state file tells it. */
  pidOf(part: string): number;
  /** SIGTERM, and the wait for a clean end. */
  stop(): Promise<number | null>;
  /** Resolves when the supervisor has ended, however. */
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
  readonly dataDir?: string;
  /** A free one where left out. */
  readonly port?: number;
  /** Variables of all its processes, beside those of this one. */
  readonly env?: Readonly<Record<string, string>>;
}

/** First start: Temporal, Postgres with initdb, migrations, API and worker. */
export const STACK_START_MS = 120_000;

export async function startStack(options: StackOptions = {}): Promise<TestStack> {
  // Here, with the variables of this process: those of `options.env` are for the running parts alone.
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
  ];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
  const ready = await until(
    () => {
      if (child.exitCode !== null) throw new Error(`stack ended early:\n${output.stderr}`);
      return /nightshift ready api=(\S+) temporal=(\S+)/.exec(output.stdout);
    },
    STACK_START_MS,
    `the ready line; so far:\n${output.stderr}`,
    50,
  );
  const baseUrl = ready[1] ?? '';
  return {
    baseUrl,
    client: new OpenAI({ baseURL: baseUrl, apiKey: 'unused', maxRetries: 5 }),
    dataDir,
    temporalAddress: ready[2] ?? '',
    pid: child.pid ?? 0,
    ended,
    pidOf: (part) => pidOf(dataDir, part),
    stop: () => stop(child),
    restart: () => startStack({ ...options, dataDir, port }),
    remove: () => {
      rmSync(dataDir, { recursive: true, force: true });
      rmSync(configFile, { force: true });
    },
  };
}

async function stop(child: ChildProcess): Promise<number | null> {
  child.kill('SIGTERM');
  await until(() => child.exitCode !== null || child.signalCode !== null, 60_000, 'the end');
  return child.exitCode;
}

function pidOf(dataDir: string, part: string): number {
  const file = join(dataDir, 'run', 'processes.json');
  const parts = JSON.parse(readFileSync(file, 'utf8')) as { name: string; pid: number }[];
  const pid = parts.find(({ name }) => name === part)?.pid;
  if (pid === undefined) throw new Error(`no part ${part} among ${JSON.stringify(parts)}`);
  return pid;
}

/** Lines for a chat batch, one model unless told otherwise. */
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

/** Polls to the end; while parts are down the calls fail and are made again. */
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

/** Lines of a result file, parsed; none where there is no file. */
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
