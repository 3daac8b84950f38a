import fs from 'node:fs';
import { SCHEDULES } from '../../../client/schedules';
import { startProxiedStack, type ProxiedStack } from '../../e2e/proxied-stack';
import { startRecordingBackend, type RecordingBackend } from '../../support/recording-backend';
import { chatLines, submit } from '../../support/stack';
import { startScrapes, type Scrapes } from './scrapes';
import { isSelected, writeRecording } from './write-recording';

/** A stack that is scraped while faults are injected. */
export interface RecordedStack {
  readonly proxied: ProxiedStack;
  readonly backend: RecordingBackend;
  readonly scrapes: Scrapes;
  /** Whether clients upload files and create batches meanwhile. */
  traffic: boolean;
  /** Whether the schedule of reconcile is triggered each second: once a minute of the rules' time. */
  reconcile: boolean;
  /** Runs a part: `steps` scrapes, of which the first comes after `inject`. */
  phase(name: string, steps: number, inject?: () => Promise<unknown>): Promise<void>;
  /** Stops everything and writes the recording. */
  finish(name: string): Promise<void>;
}

/** How the gateway of a recorded stack is called. */
const PATIENCE = {
  request_timeout: '20s',
  max_retries: 3,
  initial_backoff: '100ms',
  max_backoff: '1s',
};
const LINES = 5;
const EVERY_MS = 500;
const CALL_MS = 5_000;

/** Starts it, with traffic. `configOf` gets the settings of the gateway. */
export async function startRecordedStack(
  configOf: (gateway: Record<string, unknown>) => Record<string, unknown> = oneGateway,
): Promise<RecordedStack> {
  const backend = await startRecordingBackend(50);
  const gateway = { url: backend.url, ...PATIENCE };
  const proxied = await startProxiedStack({
    batch: { cancel_grace: '1s' },
    worker: { heartbeat_timeout: '3s' },
    ...configOf(gateway),
  });
  const port = (part: string): string => {
    const settings = JSON.parse(fs.readFileSync(proxied.stack.configFile, 'utf8')) as Record<
      string,
      { observability_port: number }
    >;
    return `http://127.0.0.1:${settings[part]?.observability_port}/metrics`;
  };
  const scrapes = startScrapes(
    [
      { job: 'nightshift-api', instance: 'api-1', url: () => port('api') },
      { job: 'nightshift-worker', instance: 'worker-1', url: () => port('worker') },
    ],
    isSelected(),
  );
  const scene = { proxied, backend, scrapes, traffic: true, reconcile: true, isOver: false };
  const loops = [clients(scene), reconcileEachSecond(scene)];
  return Object.assign(scene, {
    phase: async (name: string, steps: number, inject?: () => Promise<unknown>) => {
      process.stderr.write(`recording: ${name}, ${steps} s\n`);
      scrapes.begin(name);
      await inject?.();
      await scrapes.until(steps);
    },
    finish: async (name: string) => {
      scene.isOver = true;
      const run = await scrapes.end();
      await Promise.all(loops);
      await proxied.close();
      await backend.close();
      writeRecording(name, run);
    },
  });
}

function oneGateway(gateway: Record<string, unknown>): Record<string, unknown> {
  return { global_inference_gateway: gateway };
}

interface Scene {
  readonly proxied: ProxiedStack;
  readonly traffic: boolean;
  readonly reconcile: boolean;
  readonly isOver: boolean;
}

/** Uploads a file, creates a batch and lists batches, twice a second. */
async function clients(scene: Scene): Promise<void> {
  const { stack } = scene.proxied;
  const client = stack.client.withOptions({ maxRetries: 0, timeout: CALL_MS });
  const calls = new Set<Promise<unknown>>();
  const call = (run: () => Promise<unknown>): void => {
    const done = run()
      .catch(() => undefined)
      .finally(() => calls.delete(done));
    calls.add(done);
  };
  while (!scene.isOver) {
    if (scene.traffic) {
      call(() => submit(client, chatLines(LINES)));
      for (let i = 0; i < 2; i++) call(() => client.batches.list({ limit: 5 }));
    }
    await pause(EVERY_MS);
  }
  await Promise.all(calls);
}

async function reconcileEachSecond(scene: Scene): Promise<void> {
  const schedule = scene.proxied.temporal.schedule.getHandle(SCHEDULES.reconcile);
  while (!scene.isOver) {
    if (scene.reconcile) await schedule.trigger().catch(() => undefined);
    await pause(1_000);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
