import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from '../../cli/prepare.js';
import type { FlowPage } from '../../platform/flow-page';
import { freePort } from './free-port';
import { isReady, startSupervised, type SupervisedProcess } from './supervised-process';

/** A gateway in a process of its own, which is started again at the same address whenever it dies. */
export interface GatewayProcess extends SupervisedProcess {
  /** Base URL without `/v1`. */
  readonly url: string;
  /** The file with the token of workers. */
  readonly tokenFile: string;
  /** Whether it is ready now. */
  isReady(): Promise<boolean>;
  /** What `GET /admin/flow` says of the only pool; null while the process does not answer. */
  flow(): Promise<FlowOfPool | null>;
}

/** The members of `GET /admin/flow` that tests use. */
export interface FlowOfPool {
  readonly stock: { readonly requests: number };
  readonly queued: Readonly<Record<'critical' | 'standard' | 'sheddable', number>>;
}

export interface GatewayProcessOptions {
  /** Base URLs of the model servers. */
  readonly backends: readonly string[];
  /** Settings of the section `gateway`. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Settings of its only pool, which serves every model. */
  readonly pool?: Readonly<Record<string, unknown>>;
}

/** Starts it and waits until a backend is ready. `stop` removes its files. */
export async function startGatewayProcess(options: GatewayProcessOptions): Promise<GatewayProcess> {
  ensureBuilt();
  const folder = mkdtempSync(join(tmpdir(), 'nightshift-gateway-'));
  const [port, observabilityPort] = [await freePort(), await freePort()];
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'a-token-of-all-workers\n');
  const config = join(folder, 'gateway.json');
  const { backends, settings, pool } = options;
  const main = { models: ['*'], backends: backends.map((url) => ({ url })), ...pool };
  const ports = { port, observability_port: observabilityPort };
  const gateway = { ...ports, worker_token_file: tokenFile, pools: { main }, ...settings };
  writeFileSync(config, JSON.stringify({ log: { level: 'warn' }, gateway }));
  const supervised = await startSupervised({
    ...{ command: 'gateway', observabilityPort, logFile: join(folder, 'gateway.log') },
    writeConfig: () => config,
  });
  return {
    ...supervised,
    ...{ url: `http://127.0.0.1:${port}`, tokenFile },
    isReady: () => isReady(observabilityPort),
    flow: () => flowOf(`http://127.0.0.1:${observabilityPort}/admin/flow`),
    stop: async () => {
      await supervised.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

async function flowOf(url: string): Promise<FlowOfPool | null> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  if (answer?.ok !== true) return null;
  const [pool] = ((await answer.json()) as FlowPage).pools;
  if (pool === undefined) return null;
  const { critical, standard, sheddable } = pool.bands;
  return {
    stock: pool.stock,
    queued: {
      critical: critical.queued,
      standard: standard.queued,
      sheddable: sheddable.queued,
    },
  };
}
