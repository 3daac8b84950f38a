import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NightshiftError } from '../core/errors';
import {
  processEnvironment,
  redactUrl,
  withoutSettings,
  type ConfigSources,
} from '../platform/config';
import type { PhaseReport } from '../platform/shutdown';
import { createSupervisor, type Supervisor } from './supervision/supervisor';
import { openDataDir, type DataDir } from './data-dir';
import { executable, nodeComponent } from './node-component';
import { runOneShot } from './supervision/one-shot';
import type { ComponentEvent } from './supervision/component';
import { postgresComponent } from './postgres/postgres-component';
import { signalProcess } from './supervision/process-identity';
import { openRunState, stopOrphans } from './supervision/run-state';
import type { HeldLock } from './locks/lock-file';
import { createPortPicker } from './locks/ports';
import { lockDataDir } from './locks/data-dir-lock';
import { planStack, type StackPlan } from './stack-plan';
import { findServer } from './temporal/find-server';
import { notedVersion, temporalComponent } from './temporal/temporal-component';
import { waitUntil } from './supervision/wait';

export interface StackOptions {
  readonly dataDir: string;
  readonly sources: ConfigSources;
  /** Whether the simulator stands in where no gateway is set. */
  readonly simulator: boolean;
  readonly apiPort: 'exactly' | 'next free';
  /** Leaves out Temporal's UI, which has no authentication. */
  readonly headless?: boolean;
  /** What a person should know: one sentence. */
  say(message: string): void;
  /** A line that a part logged. */
  onLine(part: string, line: string): void;
  onEvent(part: string, event: ComponentEvent): void;
}

/** Where to reach a stack that is ready. */
export interface StackAddresses {
  /** Base URL for OpenAI clients, e.g. `http://127.0.0.1:8000/v1`. */
  readonly api: string;
  readonly temporal: string;
  readonly namespace: string;
  /** Temporal's UI; `null` if Temporal is not ours, or has none. */
  readonly ui: string | null;
  /** Whether requests go to our simulator. */
  readonly simulator: boolean;
  readonly logs: string;
}

/** All parts of `dev` and `demo`, as one thing to start and stop. */
export interface Stack {
  /**
   * Starts everything and waits until it is ready; when it fails, call `stop`.
   *
   * @throws config_invalid, data_dir_in_use, data_dir_unusable, port_in_use, temporal_unavailable,
   *   postgres_unavailable, internal
   */
  start(): Promise<StackAddresses>;
  /** Rejects when a part died too often. */
  readonly failed: Promise<never>;
  /** Drains: API, worker, simulator, Temporal, Postgres; then gives the data directory back. Idempotent. */
  stop(report?: (phase: PhaseReport) => void): Promise<void>;
  /** Ends every part at once and gives the data directory back. */
  kill(): void;
}

/** A stack in a data directory; nothing happens before `start`. */
export function createStack(options: StackOptions): Stack {
  const abort = new AbortController();
  const picker = createPortPicker();
  let held: { lock: HeldLock; crew: Supervisor } | null = null;
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  failed.catch(() => undefined);

  const start = async (): Promise<StackAddresses> => {
    const dir = openDataDir(options.dataDir);
    const lock = lockDataDir(dir.path);
    const state = openRunState(dir.run);
    const crew = createSupervisor({ ...options, logs: dir.logs, state });
    held = { lock, crew };
    crew.failed.catch(fail);
    await stopOrphans(state, ({ name, pid }) =>
      options.say(`stopping ${name} (process ${pid}), which an earlier run left behind`),
    );
    const plan = await planStack({ ...options, dir, picker });
    return startParts({ ...options, dir, plan, crew, signal: abort.signal });
  };

  return {
    start,
    failed,
    stop: async (report = () => undefined) => {
      abort.abort(new NightshiftError('internal', 'the stack is being stopped'));
      await held?.crew.stop(report);
      picker.release();
      held?.lock.release();
    },
    kill: () => {
      abort.abort(new NightshiftError('internal', 'the stack is being stopped'));
      held?.crew.kill();
      picker.release();
      held?.lock.release();
    },
  };
}

interface Site extends StackOptions {
  readonly dir: DataDir;
  readonly plan: StackPlan;
  readonly crew: Supervisor;
  readonly signal: AbortSignal;
}

/** Temporal and Postgres side by side, then the tables, the simulator, then API and worker. */
async function startParts(site: Site): Promise<StackAddresses> {
  sayWhatIsNotOurs(site);
  const [, postgresUrl] = await Promise.all([startTemporal(site), startPostgres(site)]);
  const configFile = writeConfig(site, postgresUrl);
  site.signal.throwIfAborted();
  const env = withoutSettings(processEnvironment());
  const args = ['--config', configFile];
  await Promise.race([
    runOneShot({
      name: 'migrate',
      command: process.execPath,
      args: [executable(), 'migrate', ...args],
      env,
      logPath: join(site.dir.logs, 'migrate.log'),
      signal: site.signal,
    }),
    site.crew.failed,
  ]);
  await startSimulator(site, env);
  await Promise.all([startApi(site, args, env), startWorker(site, args, env)]);
  return addresses(site);
}

async function startPostgres({ plan, dir, say, crew }: Site): Promise<string | null> {
  if (!plan.embedded.postgres) return null;
  const {
    spec,
    url,
    orphanPid: leftPid,
  } = postgresComponent({
    folder: dir.postgres,
    passwordFile: join(dir.path, 'postgres-password'),
    port: plan.ports.postgres,
    say,
  });
  if (leftPid !== null) {
    say(`stopping postgres (process ${leftPid}), which an earlier run left behind`);
    await stopServer(leftPid, spec.stopTimeoutMs);
  }
  await crew.launch(spec);
  return url;
}

async function stopServer(pid: number, timeoutMs: number): Promise<void> {
  await waitUntil(() => !signalProcess(pid, 'SIGINT'), {
    timeoutMs,
    intervalMs: 200,
    what: `end of the left PostgreSQL server (process ${pid})`,
    code: 'postgres_unavailable',
  });
}

async function startTemporal({ plan, dir, say, crew, signal, headless }: Site): Promise<void> {
  if (!plan.embedded.temporal) return;
  const env = processEnvironment();
  const wantedVersion = notedVersion(dir.temporal);
  const binary = await findServer({ env, wantedVersion, say, signal });
  const { temporal: port, ui } = plan.ports;
  const uiPort = headless === true ? null : ui;
  const childEnv = withoutSettings(env);
  await crew.launch(
    temporalComponent({ binary, folder: dir.temporal, port, uiPort, env: childEnv }),
  );
}

async function startSimulator({ plan, crew }: Site, env: Record<string, string>): Promise<void> {
  if (!plan.embedded.simulator) return;
  const port = plan.ports.simulator;
  await crew.launch(
    nodeComponent({
      name: 'simulator',
      args: ['--port', String(port)],
      env,
      probeUrl: `http://127.0.0.1:${port}/health`,
      probe: 'any',
      stopTimeoutMs: 5_000,
    }),
  );
}

async function startApi(
  { plan, crew }: Site,
  args: readonly string[],
  env: Record<string, string>,
): Promise<void> {
  const probeUrl = `http://${reachable(plan.config.api.observability_host)}:${plan.ports.apiObservability}/ready`;
  await crew.launch(
    nodeComponent({ name: 'api', args, env, probeUrl, probe: 'pid', stopTimeoutMs: 15_000 }),
  );
}

async function startWorker(
  { plan, crew }: Site,
  args: readonly string[],
  env: Record<string, string>,
): Promise<void> {
  const { drain_budget: budget } = plan.config.worker;
  const stopTimeoutMs = (budget === 'auto' ? 0 : budget) + WORKER_MARGIN_MS;
  const probeUrl = `http://${reachable(plan.config.worker.observability_host)}:${plan.ports.workerObservability}/ready`;
  await crew.launch(
    nodeComponent({ name: 'worker', args, env, probeUrl, probe: 'pid', stopTimeoutMs }),
  );
}

/** After the drain the worker still closes its journal and its connections. */
const WORKER_MARGIN_MS = 10_000;

function writeConfig({ plan, dir }: Site, postgresUrl: string | null): string {
  const file = join(dir.run, 'config.json');
  // JSON is YAML too. It holds the database's password: nobody else may read it.
  writeFileSync(file, JSON.stringify(plan.settings(postgresUrl), null, 2), { mode: 0o600 });
  return file;
}

function sayWhatIsNotOurs({ plan, say }: Site): void {
  const { embedded, config } = plan;
  if (!embedded.temporal) say(`using Temporal at ${config.temporal.address}`);
  if (!embedded.postgres) say(`using PostgreSQL at ${redactUrl(config.postgres.url)}`);
  const gateway = config.global_inference_gateway?.url;
  const target = gateway === undefined ? 'model_gateways' : redactUrl(gateway);
  if (!embedded.simulator) say(`requests go to ${target}`);
}

function addresses({ plan, dir, headless }: Site): StackAddresses {
  const { temporal, api } = plan.config;
  return {
    api: `http://${reachable(api.host)}:${api.port}/v1`,
    temporal: temporal.address,
    namespace: temporal.namespace,
    ui: plan.embedded.temporal && headless !== true ? `http://127.0.0.1:${plan.ports.ui}` : null,
    simulator: plan.embedded.simulator,
    logs: dir.logs,
  };
}

/** An address that a client on this machine can use. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
