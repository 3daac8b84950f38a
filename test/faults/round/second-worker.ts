import { readFileSync } from 'node:fs';
import { startBesideStack, type StackSettings } from '../../support/process-beside-stack';
import type { TestStack } from '../../support/stack';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy';

/** The servers that a worker connects to. */
export type LinkName = 'temporal' | 'postgres' | 'models';

/** A worker in addition to the stack's own. It is restarted whenever it dies, and each of its links can be cut. */
export interface SecondWorker {
  readonly links: Readonly<Record<LinkName, TcpProxy>>;
  /** Null while it is being restarted. */
  pid(): number | null;
  stop(): Promise<void>;
}

/**
 * Starts it with the stack's settings and another observability port, and waits until it is ready.
 *
 * @param modelsUrl a model server of its own, so that its requests can be distinguished
 */
export async function startSecondWorker(
  stack: TestStack,
  modelsUrl?: string,
): Promise<SecondWorker> {
  const settings = JSON.parse(readFileSync(stack.configFile, 'utf8')) as StackSettings;
  const links = await openLinks(settings, modelsUrl);
  const worker = await startBesideStack({
    command: 'worker',
    name: 'second-worker',
    dataDir: stack.dataDir,
    change: (own) => lead(own, links),
  });
  return {
    links,
    pid: worker.pid,
    stop: async () => {
      await worker.stop();
      await Promise.all(Object.values(links).map((link) => link.close()));
    },
  };
}

/** Starts a proxy before every server of the settings. */
async function openLinks(
  settings: StackSettings,
  modelsUrl: string | undefined,
): Promise<SecondWorker['links']> {
  const { temporal, postgres } = settings;
  return {
    temporal: await startTcpProxy(portOf(`tcp://${String(temporal?.['address'])}`)),
    postgres: await startTcpProxy(portOf(String(postgres?.['url']))),
    models: await startTcpProxy(portOf(modelsUrl ?? routesOf(settings)[0]?.url ?? '')),
  };
}

/** Lets a worker with these settings use the links. */
function lead(settings: StackSettings, links: SecondWorker['links']): void {
  const { temporal, postgres } = settings;
  settings['temporal'] = { ...temporal, address: `127.0.0.1:${links.temporal.port}` };
  settings['postgres'] = {
    ...postgres,
    url: atPort(String(postgres?.['url']), links.postgres.port),
  };
  for (const route of routesOf(settings)) route.url = atPort(route.url, links.models.port);
}

function routesOf({
  global_inference_gateway: single,
  model_gateways: several,
}: StackSettings): { url: string }[] {
  return (single === undefined ? Object.values(several ?? {}) : [single]) as { url: string }[];
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
