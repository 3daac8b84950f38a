import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processEnvironment, redactUrl, withoutSettings } from '../platform/config';
import type { DataDir } from './data-dir';
import { findGoProgram } from './binaries/go-program';
import { VERSITYGW } from './binaries/versitygw';
import { executable, nodeComponent } from './node-component';
import { postgresComponent } from './postgres/postgres-component';
import { s3Component } from './s3/s3-component';
import { SIMULATOR_SLOTS } from './gateway-plan';
import type { StackPlan } from './stack-plan';
import { runOneShot } from './supervision/one-shot';
import { signalProcess } from './supervision/process-identity';
import type { Supervisor } from './supervision/supervisor';
import { waitUntil } from './supervision/wait';
import { findServer } from './temporal/find-server';
import { databaseVersion, temporalComponent } from './temporal/temporal-component';
import { urlHost } from './url-host';

/** How to reach a stack that is ready. */
export interface StackAddresses {
  /** Base URL for OpenAI clients, e.g. `http://127.0.0.1:8000/v1`. */
  readonly api: string;
  /** Base URL for interactive calls, e.g. `http://127.0.0.1:8002/v1`; `null` without an embedded gateway. */
  readonly gateway: string | null;
  readonly temporal: string;
  readonly namespace: string;
  /** Temporal's UI; `null` if Temporal is not embedded or has no UI. */
  readonly ui: string | null;
  /** Whether requests go to the embedded simulator. */
  readonly simulator: boolean;
  readonly logs: string;
}

/** What the start of a stack needs. */
export interface StartOptions {
  readonly dir: DataDir;
  readonly plan: StackPlan;
  readonly supervisor: Supervisor;
  /** Aborts a download or build, and the migration. */
  readonly signal: AbortSignal;
  readonly headless?: boolean;
  say(message: string): void;
}

/**
 * Starts the embedded components: Temporal, PostgreSQL and the S3 server in parallel, then the simulator and
 * the gateway beside the migration, then API and worker in parallel (docs/design/embedded-stack.md#start-order).
 *
 * @throws temporal_unavailable, postgres_unavailable, internal
 */
export async function startComponents(options: StartOptions): Promise<StackAddresses> {
  announceExternalServices(options);
  const [postgresUrl] = await Promise.all([
    startPostgres(options),
    startTemporal(options),
    startS3(options),
  ]);
  const configFile = writeConfig(options, postgresUrl);
  options.signal.throwIfAborted();
  const own: OwnProcess = {
    args: ['--config', configFile],
    env: withoutSettings(processEnvironment()),
  };
  await Promise.all([migrate(options, own), startModelSide(options, own)]);
  await Promise.all([startApi(options, own), startWorker(options, own)]);
  return addresses(options);
}

/** Arguments and environment of our own processes: all settings come from the written file. */
interface OwnProcess {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function startPostgres({ plan, dir, say, supervisor }: StartOptions): Promise<string | null> {
  if (!plan.embedded.postgres) return null;
  const { spec, url, orphanPid } = postgresComponent({
    folder: dir.postgres,
    passwordFile: join(dir.path, 'postgres-password'),
    port: plan.ports.postgres,
    say,
  });
  if (orphanPid !== null) {
    say(`stopping postgres (process ${orphanPid}), which an earlier run left behind`);
    await stopOrphanServer(orphanPid, spec.stopTimeoutMs);
  }
  await supervisor.launch(spec);
  return url;
}

async function stopOrphanServer(pid: number, timeoutMs: number): Promise<void> {
  await waitUntil(() => !signalProcess(pid, 'SIGINT'), {
    timeoutMs,
    intervalMs: 200,
    what: `end of the PostgreSQL server of an earlier run (process ${pid})`,
    code: 'postgres_unavailable',
  });
}

async function startTemporal(options: StartOptions): Promise<void> {
  const { plan, dir, say, supervisor, signal, headless } = options;
  if (!plan.embedded.temporal) return;
  const env = processEnvironment();
  const wantedVersion = databaseVersion(dir.temporal);
  const binary = await findServer({ env, wantedVersion, say, signal });
  await supervisor.launch(
    temporalComponent({
      binary,
      folder: dir.temporal,
      port: plan.ports.temporal,
      uiPort: headless === true ? null : plan.ports.ui,
      env: withoutSettings(env),
    }),
  );
}

async function startS3({ plan, dir, say, supervisor, signal }: StartOptions): Promise<void> {
  if (!plan.embedded.s3) return;
  const { path } = await findGoProgram(VERSITYGW, { env: processEnvironment(), say, signal });
  const port = plan.ports.s3;
  await supervisor.launch(s3Component({ program: path, folder: dir.s3, port }));
  say(`objects are in the S3 server at http://127.0.0.1:${port}`);
}

async function migrate({ dir, supervisor, signal }: StartOptions, own: OwnProcess): Promise<void> {
  const step = runOneShot({
    name: 'migrate',
    command: process.execPath,
    args: [executable(), 'migrate', ...own.args],
    env: own.env,
    logPath: join(dir.logs, 'migrate.log'),
    signal,
  });
  await Promise.race([step, supervisor.failed]);
}

/** The gateway is ready only when the simulator is. */
async function startModelSide(options: StartOptions, own: OwnProcess): Promise<void> {
  await startSimulator(options, own);
  await startGateway(options, own);
}

async function startSimulator({ plan, supervisor }: StartOptions, own: OwnProcess): Promise<void> {
  if (!plan.embedded.simulator) return;
  const { simulator: port, audio } = plan.ports;
  await supervisor.launch(
    nodeComponent({
      name: 'simulator',
      args: [
        ...['--port', String(port), '--audio-port', String(audio)],
        ...['--slots', String(SIMULATOR_SLOTS)],
      ],
      env: own.env,
      probeUrl: `http://127.0.0.1:${port}/health`,
      probe: 'any',
      stopTimeoutMs: 5_000,
    }),
  );
}

/** Time that the gateway needs after its drain to drop what waits, and to close its connections. */
const GATEWAY_MARGIN_MS = 10_000;

async function startGateway({ plan, supervisor }: StartOptions, own: OwnProcess): Promise<void> {
  if (!plan.embedded.gateway) return;
  const { observability_host: host, drain_budget: budgetMs } = plan.config.gateway;
  // Without a ready backend the gateway is not ready. Servers of the user may come later than the stack.
  const page = plan.embedded.simulator ? 'ready' : 'health';
  const probeUrl = `http://${urlHost(host)}:${plan.ports.gatewayObservability}/${page}`;
  const stopTimeoutMs = budgetMs + GATEWAY_MARGIN_MS;
  await supervisor.launch(
    nodeComponent({ name: 'gateway', ...own, probeUrl, probe: 'pid', stopTimeoutMs }),
  );
}

async function startApi({ plan, supervisor }: StartOptions, own: OwnProcess): Promise<void> {
  const probeUrl = `http://${urlHost(plan.config.api.observability_host)}:${plan.ports.apiObservability}/ready`;
  await supervisor.launch(
    nodeComponent({ name: 'api', ...own, probeUrl, probe: 'pid', stopTimeoutMs: 15_000 }),
  );
}

/** Time that the worker needs after its drain to close its journal and its connections. */
const WORKER_MARGIN_MS = 10_000;

async function startWorker({ plan, supervisor }: StartOptions, own: OwnProcess): Promise<void> {
  const { drain_budget: budget, observability_host: host } = plan.config.worker;
  const stopTimeoutMs = (budget === 'auto' ? 0 : budget) + WORKER_MARGIN_MS;
  const probeUrl = `http://${urlHost(host)}:${plan.ports.workerObservability}/ready`;
  await supervisor.launch(
    nodeComponent({ name: 'worker', ...own, probeUrl, probe: 'pid', stopTimeoutMs }),
  );
}

/** Writes JSON, which is YAML too. The mode matters: the file holds the database's password. */
function writeConfig({ plan, dir }: StartOptions, postgresUrl: string | null): string {
  const file = join(dir.run, 'config.json');
  writeFileSync(file, JSON.stringify(plan.settings(postgresUrl), null, 2), { mode: 0o600 });
  return file;
}

function announceExternalServices({ plan, say }: StartOptions): void {
  const { embedded, config } = plan;
  if (!embedded.temporal) say(`using Temporal at ${config.temporal.address}`);
  if (!embedded.postgres) say(`using PostgreSQL at ${redactUrl(config.postgres.url)}`);
  const places = embedded.gateway ? poolUrls(plan) : workerUrls(plan);
  if (!embedded.simulator) say(`requests go to ${places}`);
}

/** The model servers behind the embedded gateway. */
function poolUrls({ config }: StackPlan): string {
  const backends = Object.values(config.gateway.pools).flatMap((pool) => pool.backends);
  return `${backends.map(({ url }) => redactUrl(url)).join(', ')}, through the gateway`;
}

function workerUrls({ config }: StackPlan): string {
  const gateway = config.global_inference_gateway?.url;
  return gateway === undefined ? 'model_gateways' : redactUrl(gateway);
}

function addresses({ plan, dir, headless }: StartOptions): StackAddresses {
  const { temporal, api, gateway } = plan.config;
  return {
    api: `http://${urlHost(api.host)}:${api.port}/v1`,
    gateway: plan.embedded.gateway ? `http://${urlHost(gateway.host)}:${gateway.port}/v1` : null,
    temporal: temporal.address,
    namespace: temporal.namespace,
    ui: plan.embedded.temporal && headless !== true ? `http://127.0.0.1:${plan.ports.ui}` : null,
    simulator: plan.embedded.simulator,
    logs: dir.logs,
  };
}
