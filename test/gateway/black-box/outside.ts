/**
 * What the tests of this folder know of a gateway: the built command, a YAML file, HTTP, and signals. They import
 * nothing of the product, so their expectations come from its documents alone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { ensureBuilt } from '../../../cli/prepare.js';
import { freePort } from '../../support/free-port';
import { metricValues } from '../../support/metric-values';
import { until } from '../../support/until';
import { onClose } from './cleanup';
import { Asked, type Fields, type Json, Wire } from './client';

export { closeOutside } from './cleanup';
export { type Asked, dropped, refusal } from './client';
export { answerOf, ScriptedBackend } from './scripted-backend';

const MAIN = resolve(__dirname, '../../../dist/cli/main.js');
const WAIT_MS = 10_000;
const POLL_MS = 2;
/** The token of workers in every test. */
export const TOKEN = 'a-token-of-all-the-workers';

type Band = 'critical' | 'standard' | 'sheddable';

/** What docs/gateway.md#admin-flow says of a pool, as far as these tests read it. */
export interface PoolView {
  readonly stock: { readonly requests: number; readonly cost: number };
  readonly bounds: Readonly<Record<'lower' | 'watermark' | 'upper', number>>;
  readonly saturation: number;
  readonly queued_cost: number;
  readonly queued_bytes: number;
  readonly active_flows: number;
  readonly bands: Readonly<
    Record<Band, { readonly queued: number; readonly dispatched: Readonly<Record<string, number>> }>
  >;
  readonly backends: readonly { readonly state: string; readonly in_flight: number }[];
}

/** A `nightshift gateway` in a process of its own. */
export class Outside {
  readonly adminUrl: string;
  private readonly child: ChildProcess;
  private readonly port: number;
  readonly configFile: string;
  private readonly logFile: string;

  private constructor(
    child: ChildProcess,
    [port, adminPort]: readonly number[],
    configFile: string,
    logFile: string,
  ) {
    this.child = child;
    this.port = port ?? 0;
    this.adminUrl = `http://127.0.0.1:${adminPort}`;
    this.configFile = configFile;
    this.logFile = logFile;
  }

  /** Starts it with the sections of a YAML file. Waits until backends are ready, unless `isReady` says otherwise. */
  static async start(
    sections: Json,
    isReady?: (outside: Outside) => Promise<boolean>,
  ): Promise<Outside> {
    ensureBuilt();
    const folder = mkdtempSync(join(tmpdir(), 'nightshift-black-box-'));
    onClose(() => rmSync(folder, { recursive: true }));
    const [port, observability_port] = [await freePort(), await freePort()];
    const worker_token_file = join(folder, 'token');
    writeFileSync(worker_token_file, `${TOKEN}\n`);
    const gateway = {
      port,
      observability_port,
      worker_token_file,
      ...(sections['gateway'] as Json),
    };
    const file = join(folder, 'gateway.yaml');
    writeFileSync(file, stringify({ log: { level: 'warn' }, ...sections, gateway }));
    const logFile = join(folder, 'log');
    const log = openSync(logFile, 'a');
    const child = spawn(process.execPath, [MAIN, 'gateway', '--config', file], {
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    const outside = new Outside(child, [port, observability_port], file, logFile);
    onClose(() => outside.kill('SIGKILL'));
    await until(() => outside.hasStarted(isReady), 20_000, 'the gateway', 20);
    return outside;
  }

  private async hasStarted(isReady = allReady): Promise<boolean> {
    if (this.child.exitCode !== null) throw new Error(readFileSync(this.logFile, 'utf8'));
    return isReady(this).catch(() => false);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  log(): string {
    return readFileSync(this.logFile, 'utf8');
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Waits for the end of the process: its exit code, or the signal that ended it. */
  async ended(): Promise<number | NodeJS.Signals> {
    const { child } = this;
    await until(() => child.exitCode !== null || child.signalCode !== null, WAIT_MS, 'the end');
    return child.exitCode ?? child.signalCode ?? 'SIGKILL';
  }

  async kill(name: NodeJS.Signals): Promise<number | NodeJS.Signals> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(name);
    return this.ended();
  }

  async view(): Promise<Readonly<Record<string, PoolView>>> {
    const page = (await (await fetch(`${this.adminUrl}/admin/flow`)).json()) as {
      pools: (PoolView & { name: string })[];
    };
    return Object.fromEntries(page.pools.map((pool) => [pool.name, pool]));
  }

  async pool(name: string): Promise<PoolView> {
    const pool = (await this.view())[name];
    if (pool === undefined) throw new Error(`no pool ${name}`);
    return pool;
  }

  /** Waits until the pool has so many requests in flight and so many in its queue. */
  async has(pool: string, inFlight: number, queued: number): Promise<void> {
    let seen = '';
    const isSo = async () => {
      const { stock, bands } = await this.pool(pool);
      const waiting = bands.critical.queued + bands.standard.queued + bands.sheddable.queued;
      seen = `${stock.requests} in flight and ${waiting} queued`;
      return stock.requests === inFlight && waiting === queued;
    };
    const what = `${inFlight} in flight and ${queued} queued`;
    await until(isSo, WAIT_MS, what, POLL_MS).catch((error: Error) => {
      throw new Error(`${error.message}; the pool has ${seen}`);
    });
  }

  /** Number of waiting requests, by band. */
  async queued(pool: string): Promise<Record<Band, number>> {
    const { critical, standard, sheddable } = (await this.pool(pool)).bands;
    return {
      critical: critical.queued,
      standard: standard.queued,
      sheddable: sheddable.queued,
    };
  }

  async metrics(): Promise<Record<string, number>> {
    return metricValues(await (await fetch(`${this.adminUrl}/metrics`)).text());
  }

  /** Sends a request for a model, which names the pool, and gives it this name. */
  ask(model: string, name: string, fields: Fields = {}, body: Json | Buffer = {}): Asked {
    return new Asked(this.port, model, name, fields, body);
  }

  /** Sends a line of a batch in the name of a tenant. */
  line(model: string, name: string, tenant: string, fields: Fields = {}, body: Json = {}): Asked {
    const own = { authorization: `Bearer ${TOKEN}`, 'x-gateway-inference-fairness-id': tenant };
    return this.ask(model, name, { ...own, ...fields }, body);
  }

  /**
   * Sends requests one after the other, each when the one before it is counted, so that the order in which they came is
   * known. All of them must wait.
   */
  async queue(pool: string, sends: readonly (() => Asked)[]): Promise<Asked[]> {
    const asked: Asked[] = [];
    const { stock, bands } = await this.pool(pool);
    const before = bands.critical.queued + bands.standard.queued + bands.sheddable.queued;
    for (const send of sends) {
      asked.push(send());
      await this.has(pool, stock.requests, before + asked.length);
    }
    return asked;
  }

  /** A connection that sends these bytes as they are. */
  wire(bytes: string | Buffer): Wire {
    return new Wire(this.port, bytes);
  }
}

async function allReady(outside: Outside): Promise<boolean> {
  const pools = Object.values(await outside.view());
  return pools.every(({ backends }) => backends.every(({ state }) => state === 'ready'));
}

/** A pool of one model that has its own name. */
export function poolOf(
  name: string,
  backends: readonly { readonly url: string }[],
  settings: Json = {},
): Json {
  return {
    [name]: {
      models: [name],
      backends: backends.map(({ url }) => ({ url })),
      probe: { interval: '100ms' },
      ...settings,
    },
  };
}

/** Bounds with which one request is in flight at a time. */
export const ONE_AT_A_TIME = {
  request_queue_controller: {
    watermark_per_backend: 1,
    lower_bound_per_backend: 1,
    upper_bound_per_backend: 1,
  },
  bands: { ceilings: [1, 1, 1] },
};
