import { NightshiftError } from '../core/errors';
import {
  findSettings,
  loadConfig,
  mergeSettings,
  processEnvironment,
  type Config,
  type ConfigSources,
} from '../platform/config';
import { formatDuration } from '../platform/units';
import type { DataDir } from './data-dir';
import {
  chooseGatewayPort,
  decideModelSide,
  modelSideSettings,
  type ModelSide,
} from './gateway-plan';
import type { PortPicker } from './locks/ports';
import { s3Settings } from './s3/s3-component';
import { chooseStore, type StoreKind } from './s3/store-kind';

/** What a stack is planned from. */
export interface PlanOptions {
  readonly dir: DataDir;
  readonly sources: ConfigSources;
  /** Whether to start the simulator if no model server is configured. */
  readonly simulator: boolean;
  /** Settings that the simulator's base URL is part of; not asked for without a simulator. */
  readonly simulatorSettings?: ((url: string) => Record<string, unknown>) | undefined;
  /** Whether to start the gateway if it has a pool. */
  readonly gateway: boolean;
  /** If the port is in use: fail (`dev`), or take the next free one (`demo`). */
  readonly apiPort: 'exactly' | 'next free';
  /** Where to keep objects if the settings do not say so; without it, where they are already. */
  readonly store?: StoreKind | undefined;
  /** Claims the ports; its owner releases them. */
  readonly picker: PortPicker;
}

/** Which components of a stack are embedded, on which ports and with which settings. */
export interface StackPlan {
  readonly embedded: {
    readonly temporal: boolean;
    readonly postgres: boolean;
    readonly simulator: boolean;
    readonly gateway: boolean;
    readonly s3: boolean;
  };
  readonly ports: StackPorts;
  /** The validated settings. If PostgreSQL is embedded, `postgres.url` is still a placeholder. */
  readonly config: Config;
  /** All settings of API, worker and gateway, to be written as one file. */
  settings(postgresUrl: string | null): Record<string, unknown>;
}

/** The loopback port of every component. */
export interface StackPorts {
  readonly api: number;
  readonly apiObservability: number;
  readonly workerObservability: number;
  readonly temporal: number;
  readonly ui: number;
  readonly postgres: number;
  readonly simulator: number;
  /** Of the simulator's audio worker. */
  readonly audio: number;
  readonly gateway: number;
  readonly gatewayObservability: number;
  readonly s3: number;
}

const LOOPBACK = '127.0.0.1';
const FIRST_PORTS = {
  temporal: 7233,
  ui: 8233,
  postgres: 15_432,
  simulator: 8001,
  gateway: 8002,
  audio: 8003,
  s3: 7070,
} as const;
/** Drain budget unless it is set: long enough for most answers, short enough to wait for after Ctrl-C. */
const DRAIN_BUDGET_MS = 30_000;

/**
 * Decides settings and ports before anything starts, so that every conflict is reported at once.
 *
 * @throws config_invalid, port_in_use
 */
export async function planStack(given: PlanOptions): Promise<StackPlan> {
  const options = withoutTemporalCredentials(given);
  const set = findSettings(options.sources, [
    'temporal.address',
    'postgres.url',
    'object_store.type',
  ]);
  const side = decideModelSide(options.sources, options);
  const { dir, store: wantedStore } = options;
  const isConfigured = set.has('object_store.type');
  const store = chooseStore({ dir, wanted: wantedStore, isConfigured });
  const embedded = {
    temporal: !set.has('temporal.address'),
    postgres: !set.has('postgres.url'),
    simulator: side.simulator,
    gateway: side.gateway,
    s3: store === 's3',
  };
  const wanted = loadConfig({
    ...options.sources,
    fallbacks: {
      ...modelSideSettings({
        side,
        simulatorPort: FIRST_PORTS.simulator,
        audioPort: FIRST_PORTS.audio,
        gatewayPort: FIRST_PORTS.gateway,
        workerToken: dir.workerToken,
        spoolDir: dir.spool,
        gateway: null,
        simulatorSettings: options.simulatorSettings,
      }),
      ...storeSettings(dir, store, FIRST_PORTS.s3),
    },
    needs: ['gateway'],
  });
  const ports = await choosePorts(wanted, options);
  const merged = (postgresUrl: string | null): ConfigSources =>
    withDecisions(options, { embedded, side, ports, wanted, postgresUrl, store });
  const config = loadConfig({
    ...merged(embedded.postgres ? 'postgres://pending' : null),
    needs: ['gateway', 'postgres', ...(embedded.gateway ? (['pools'] as const) : [])],
  });
  return { embedded, ports, config, settings: (url) => mergeSettings(merged(url)) };
}

/**
 * The embedded Temporal server supports neither API keys nor TLS. Temporal's own environment variables for
 * them are ignored, because they may be set for other tools. The same settings in Nightshift's file or
 * variables are an error.
 */
function withoutTemporalCredentials(options: PlanOptions): PlanOptions {
  const { sources } = options;
  if (findSettings(sources, ['temporal.address']).has('temporal.address')) return options;
  const all = Object.entries(sources.env ?? processEnvironment());
  const env = Object.fromEntries(all.filter(([name]) => !/^TEMPORAL_(API_KEY|TLS)/.test(name)));
  const secured = ['temporal.api_key', 'temporal.api_key_file', 'temporal.tls'];
  const [first] = findSettings({ ...sources, env }, secured);
  if (first === undefined) return { ...options, sources: { ...sources, env } };
  const message = `${first} is set, but temporal.address is not: set the address of that server, or remove ${first} to use an embedded one`;
  throw new NightshiftError('config_invalid', message);
}

async function choosePorts(wanted: Config, options: PlanOptions): Promise<StackPorts> {
  const { api, worker, gateway } = wanted;
  const { apiPort, picker } = options;
  const hint = 'choose another with --port, or stop the process that listens there';
  const inner = (port: number): Promise<number> => picker.next(LOOPBACK, port);
  return {
    api:
      apiPort === 'exactly'
        ? await picker.exactly(api.host, api.port, hint)
        : await picker.next(api.host, api.port),
    apiObservability: await inner(api.observability_port),
    workerObservability: await inner(worker.observability_port),
    temporal: await inner(FIRST_PORTS.temporal),
    ui: await inner(FIRST_PORTS.ui),
    postgres: await inner(FIRST_PORTS.postgres),
    simulator: await inner(FIRST_PORTS.simulator),
    audio: await inner(FIRST_PORTS.audio),
    gateway: await chooseGatewayPort(wanted, options),
    gatewayObservability: await inner(gateway.observability_port),
    s3: await inner(FIRST_PORTS.s3),
  };
}

interface Decisions {
  readonly embedded: StackPlan['embedded'];
  readonly side: ModelSide;
  readonly ports: StackPorts;
  readonly wanted: Config;
  readonly postgresUrl: string | null;
  readonly store: StoreKind | null;
}

/** The caller's sources, with addresses of embedded components as fallbacks and chosen ports as overrides. */
function withDecisions(options: PlanOptions, decisions: Decisions): ConfigSources {
  const { embedded, side, ports, wanted, postgresUrl } = decisions;
  const { drain_budget: budget } = wanted.worker;
  const fallbacks = {
    ...(embedded.temporal ? { temporal: { address: `${LOOPBACK}:${ports.temporal}` } } : {}),
    ...(postgresUrl === null ? {} : { postgres: { url: postgresUrl } }),
    ...storeSettings(options.dir, decisions.store, ports.s3),
    ...modelSideSettings({
      side,
      simulatorPort: ports.simulator,
      audioPort: ports.audio,
      gatewayPort: ports.gateway,
      workerToken: options.dir.workerToken,
      spoolDir: options.dir.spool,
      gateway: wanted.gateway,
      simulatorSettings: options.simulatorSettings,
    }),
    pass_through_key_file: options.dir.passThroughKey,
  };
  const decided = {
    api: { port: ports.api, observability_port: ports.apiObservability },
    worker: {
      observability_port: ports.workerObservability,
      drain_budget: formatDuration(budget === 'auto' ? DRAIN_BUDGET_MS : budget),
    },
    ...(embedded.gateway
      ? { gateway: { port: ports.gateway, observability_port: ports.gatewayObservability } }
      : {}),
    log: { format: 'json' },
  };
  const { overrides = {} } = options.sources;
  return { ...options.sources, fallbacks, overrides: mergeDeep(overrides, decided) };
}

function storeSettings(
  dir: DataDir,
  store: StoreKind | null,
  s3Port: number,
): Record<string, unknown> {
  if (store === null) return {};
  if (store === 's3') return { object_store: s3Settings(dir.s3, s3Port) };
  return { object_store: { type: 'filesystem', path: dir.objects } };
}

function mergeDeep(
  base: Readonly<Record<string, unknown>>,
  over: Readonly<Record<string, object>>,
): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    merged[key] = { ...(merged[key] as object | undefined), ...value };
  }
  return merged;
}
