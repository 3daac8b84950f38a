import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../platform/package-root';
import { freePort } from '../../support/free-port';
import type { TestStack } from '../../support/stack';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy';
import { until } from '../../support/until';

/** The servers that a worker connects to. */
export type LinkName = 'temporal' | 'postgres' | 'models';

/** A worker in addition to the stack's own. It is restarted whenever it dies, and each of its links can be cut. */
export interface SecondWorker {
  readonly links: Readonly<Record<LinkName, TcpProxy>>;
  /** Null while it is being restarted. */
  pid(): number | null;
  stop(): Promise<void>;
}

const RESTART_MS = 250;
const READY_MS = 60_000;

/**
 * Starts it with the stack's settings and another observability port, and waits until it is ready.
 *
 * @param modelsUrl a model server of its own, so that its requests can be distinguished
 */
export async function startSecondWorker(
  stack: TestStack,
  modelsUrl?: string,
): Promise<SecondWorker> {
  const settings = JSON.parse(
    readFileSync(join(stack.dataDir, 'run', 'config.json'), 'utf8'),
  ) as Record<string, Record<string, unknown>>;
  const port = await freePort();
  settings['worker'] = { ...settings['worker'], observability_port: port };
  const links = await openLinks(settings, modelsUrl);
  const file = join(stack.dataDir, 'run', 'second-worker.json');
  writeFileSync(file, JSON.stringify(settings), { mode: 0o600 });
  const log = openSync(join(stack.dataDir, 'logs', 'second-worker.log'), 'a');
  const args = [join(packageRoot(), 'dist', 'cli', 'main.js'), 'worker', '--config', file];
  let child: ChildProcess | null = null;
  let stopping = false;
  const start = (): void => {
    const started = spawn(process.execPath, args, { stdio: ['ignore', log, log] });
    child = started;
    started.once('exit', () => {
      child = null;
      if (!stopping) setTimeout(() => stopping || start(), RESTART_MS);
    });
  };
  start();
  const isReady = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/ready`, { signal: AbortSignal.timeout(2_000) })
      .then(({ ok }) => ok)
      .catch(() => false);
  await until(isReady, READY_MS, 'the second worker', 100);
  return {
    links,
    pid: () => child?.pid ?? null,
    stop: async () => {
      stopping = true;
      child?.kill('SIGTERM');
      await until(() => child === null, 60_000, 'the end of the second worker');
      await Promise.all(Object.values(links).map((link) => link.close()));
    },
  };
}

/** Puts a proxy before every server of the settings. */
async function openLinks(
  settings: Record<string, Record<string, unknown>>,
  modelsUrl: string | undefined,
): Promise<SecondWorker['links']> {
  const {
    temporal,
    postgres,
    global_inference_gateway: single,
    model_gateways: several,
  } = settings;
  const gateways = single === undefined ? Object.values(several ?? {}) : [single];
  const routes = gateways as { url: string }[];
  const links = {
    temporal: await startTcpProxy(portOf(`tcp://${String(temporal?.['address'])}`)),
    postgres: await startTcpProxy(portOf(String(postgres?.['url']))),
    models: await startTcpProxy(portOf(modelsUrl ?? routes[0]?.url ?? '')),
  };
  settings['temporal'] = { ...temporal, address: `127.0.0.1:${links.temporal.port}` };
  settings['postgres'] = {
    ...postgres,
    url: atPort(String(postgres?.['url']), links.postgres.port),
  };
  for (const route of routes) route.url = atPort(route.url, links.models.port);
  return links;
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

function atPort(url: string, port: number): string {
  const moved = new URL(url);
  moved.hostname = '127.0.0.1';
  moved.port = String(port);
  return moved.href;
}
