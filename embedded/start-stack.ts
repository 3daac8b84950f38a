import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { NightshiftError } from '../core/errors';
import { processEnvironment } from '../platform/config';
import { packageRoot } from '../platform/package-root';
import type { FromHost, HostOptions, ToHost } from './stack-host';

/** What to start; everything has a default. */
export interface StartStackOptions {
  /**
   * Folder for databases, files and logs. A stack that is started in it again continues its batches.
   * Default: a new temporary folder, which `stop` removes.
   */
  readonly dataDir?: string | undefined;
  /** Port of the API. Default: the first free one from 8000 on. */
  readonly port?: number | undefined;
  /** Base URL of a model server. Default: a simulator that answers with random words. */
  readonly gatewayUrl?: string | undefined;
  /**
   * Where objects are kept: in a folder, or in an S3 server that the stack starts too. Default: `filesystem`.
   * Without the program of that server, the first start builds it with Go, which takes minutes.
   */
  readonly store?: 'filesystem' | 's3' | undefined;
  /**
   * Further settings, nested as in a configuration file, e.g. `{ concurrency: { global: 4 } }`. Variables of
   * this process that begin with `NIGHTSHIFT__`, `TEMPORAL_` or `PG`, and `DATABASE_URL`, are ignored.
   */
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  /** Gets a sentence about each step that takes time, and each error that a process logs. */
  readonly onMessage?: ((message: string) => void) | undefined;
}

/** A stack that is ready. */
export interface RunningStack {
  /** Base URL for OpenAI clients, e.g. `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string;
  /**
   * Base URL for interactive calls, e.g. `http://127.0.0.1:8002/v1`: the gateway that batches go through too.
   * `null` if the stack has none, because `gatewayUrl` or `settings` name a model server.
   */
  readonly gatewayBaseUrl: string | null;
  /** Host and port of the Temporal server. */
  readonly temporalAddress: string;
  readonly namespace: string;
  /** Folder for databases, files and logs. */
  readonly dataDir: string;
  /**
   * Drains and stops everything, and removes a temporary folder. Every call returns the same promise.
   * Rejects if the stack failed before.
   */
  stop(): Promise<void>;
}

/**
 * Starts Temporal, PostgreSQL, the API, a worker, a simulated model server and the gateway in front of it on free ports
 * of this machine, and waits until they are ready (docs/testing.md). The first start on a machine may take minutes: it
 * downloads the Temporal server, or builds it with Go.
 *
 * The stack runs in processes of its own. It also ends when this process ends in any way.
 *
 * @throws an error that says what to do, if a setting is invalid or a component does not start
 */
export async function startStack(options: StartStackOptions = {}): Promise<RunningStack> {
  const { onMessage = () => undefined } = options;
  const program = join(packageRoot(), 'dist', 'embedded', 'stack-host.js');
  const host = fork(program, [], {
    // Flags of this process, such as a debugger's port, are not for the stack.
    execArgv: [],
    // Without it, variables that a test sets would not arrive: in Jest, `process.env` is a copy.
    env: processEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const end = endOf(host);
  end.catch(() => undefined);
  const ready = new Promise<Extract<FromHost, { kind: 'ready' }>>((resolve) => {
    host.on('message', (message: FromHost) => {
      if (message.kind === 'message') onMessage(message.text);
      if (message.kind === 'ready') resolve(message);
    });
  });
  send(host, { kind: 'start', options: hostOptions(options) });
  const stack = await Promise.race([ready, end.then(endedEarly)]);
  // A test that forgets to stop its stack can end nevertheless, and the stack ends with it.
  setHeld(host, false);
  let stopped: Promise<void> | undefined;
  const { baseUrl, gatewayBaseUrl, temporalAddress, namespace, dataDir } = stack;
  return {
    baseUrl,
    gatewayBaseUrl,
    temporalAddress,
    namespace,
    dataDir,
    stop: () => (stopped ??= stopHost(host, end)),
  };
}

/** The options without callbacks, which cannot be sent to another process. */
function hostOptions(options: StartStackOptions): HostOptions {
  const { dataDir = null, port = null, gatewayUrl, store = null, settings = {} } = options;
  const gateway = gatewayUrl === undefined ? {} : { global_inference_gateway: { url: gatewayUrl } };
  return { dataDir, port, store, settings: { ...settings, ...gateway } };
}

function stopHost(host: ChildProcess, end: Promise<void>): Promise<void> {
  setHeld(host, true);
  send(host, { kind: 'stop' });
  return end;
}

/** The host may have ended already; `endOf` reports that. */
function send(host: ChildProcess, message: ToHost): void {
  host.send(message, () => undefined);
}

const SHOWN_CHARACTERS = 2_000;

/** Resolves when the host has ended as asked, and rejects with the reason if it failed. */
function endOf(host: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let failure: string | undefined;
    let output = '';
    host.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-SHOWN_CHARACTERS);
    });
    host.on('message', (message: FromHost) => {
      if (message.kind === 'failed') failure ??= message.text;
    });
    host.once('error', (error) => reject(new NightshiftError('internal', error.message)));
    host.once('close', (code, signal) => {
      if (code === 0 && failure === undefined) return resolve();
      const how = signal ?? `exit status ${code}`;
      reject(new NightshiftError('internal', failure ?? `the stack ended (${how}): ${output}`));
    });
  });
}

function endedEarly(): never {
  throw new NightshiftError('internal', 'the stack ended before it was ready');
}

/** Whether the host keeps the event loop of this process alive. */
function setHeld(host: ChildProcess, isHeld: boolean): void {
  const method = isHeld ? 'ref' : 'unref';
  host[method]();
  host.channel?.[method]();
  // The type of a pipe does not say that it is a socket.
  (host.stderr as { ref?: () => void; unref?: () => void } | null)?.[method]?.();
}
