import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { StoreKind } from './s3/store-kind';
import { createStack, type Stack } from './stack';
import { terminalLine } from './terminal-lines';

/**
 * The process that runs a stack for `startStack`. It is a process of its own for two reasons. The stack ends
 * with the caller, even if the caller is killed: then the channel between them closes. And a test that
 * blocks its event loop or replaces its timers does not disturb the supervisor.
 */

/** The options of `startStack` that the host needs. */
export interface HostOptions {
  /** `null`: a new temporary folder. */
  readonly dataDir: string | null;
  /** `null`: any free port. */
  readonly port: number | null;
  /** `null`: the store of the data directory, or a new one in a folder. */
  readonly store: StoreKind | null;
  readonly settings: Readonly<Record<string, unknown>>;
}

/** A message to the host. `start` comes first and once. */
export type ToHost =
  { readonly kind: 'start'; readonly options: HostOptions } | { readonly kind: 'stop' };

/** A message from the host. The host ends after `failed`. */
export type FromHost =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'failed'; readonly text: string }
  | {
      readonly kind: 'ready';
      readonly baseUrl: string;
      readonly gatewayBaseUrl: string | null;
      readonly temporalAddress: string;
      readonly namespace: string;
      readonly dataDir: string;
    };

/** Short, because tests wait for the end. Requests that it cuts off are sent again after a restart. */
const DRAIN_BUDGET = '2s';

/** Resolves when the message is sent, or if the caller is gone; then the host is about to stop. */
function tell(message: FromHost): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) return resolve();
    process.send(message, undefined, undefined, () => resolve());
  });
}

async function run(options: HostOptions, stopped: Promise<void>): Promise<void> {
  const dataDir = options.dataDir === null ? temporaryFolder() : resolve(options.dataDir);
  const stack = openStack(options, dataDir);
  try {
    await Promise.race([serve(stack, dataDir, stopped), stack.failed, stopped]);
  } catch (error) {
    await fail(error);
  }
  await stack.stop();
  if (options.dataDir === null) rmSync(dataDir, { recursive: true, force: true });
}

/** Makes the caller's `startStack` or `stop` fail. The first reason counts. */
async function fail(error: unknown): Promise<void> {
  process.exitCode = 1;
  await tell({ kind: 'failed', text: error instanceof Error ? error.message : String(error) });
}

async function serve(stack: Stack, dataDir: string, stopped: Promise<void>): Promise<void> {
  const { api, gateway, temporal, namespace } = await stack.start();
  const addresses = { baseUrl: api, gatewayBaseUrl: gateway, temporalAddress: temporal };
  await tell({ kind: 'ready', ...addresses, namespace, dataDir });
  await stopped;
}

function openStack({ port, store, settings }: HostOptions, dataDir: string): Stack {
  const { api, worker, gateway } = settings;
  const overrides = {
    ...settings,
    ...(port === null ? {} : { api: { ...(api as object | undefined), port } }),
    worker: { drain_budget: DRAIN_BUDGET, ...(worker as object | undefined) },
    gateway: { drain_budget: DRAIN_BUDGET, ...(gateway as object | undefined) },
  };
  const say = (text: string): void => void tell({ kind: 'message', text });
  return createStack({
    dataDir,
    // Without the environment: a test must not use the databases that its shell names.
    sources: { env: {}, overrides },
    simulator: true,
    gateway: true,
    store: store ?? undefined,
    apiPort: port === null ? 'next free' : 'exactly',
    headless: true,
    say,
    onLine: (component, line) => {
      const text = terminalLine(component, line, 'error');
      if (text !== null) say(text);
    },
    onEvent: (component, event) => {
      if (event.kind === 'died') say(`${component} ended (${event.how})`);
    },
  });
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'nightshift-stack-'));
  // Other users may enter: if we are root, PostgreSQL runs as another user and has its folder in here.
  chmodSync(folder, 0o711);
  return folder;
}

function main(): void {
  const stopped = new Promise<void>((stop) => {
    process.on('disconnect', stop).on('SIGTERM', () => stop());
    process.on('message', (message: ToHost) => {
      if (message.kind === 'stop') return stop();
      void run(message.options, stopped)
        .catch(fail)
        .finally(() => process.exit());
    });
  });
  // A Ctrl-C reaches the whole foreground group. The caller decides what it means.
  process.on('SIGINT', () => undefined).on('SIGHUP', () => undefined);
}

if (require.main === module) main();
