import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common';
import { prepareNamespace } from '../../client/namespace';
import { findServer } from '../../embedded/temporal/find-server';
import { configSchema } from '../../platform/config-schema';
import { freePort } from './free-port';
import { oncePerRun, runFolder, spawnGuarded } from './once-per-run';
import { until } from './until';

/** A Temporal server with a namespace of its own. */
export interface TestTemporal {
  readonly address: string;
  readonly namespace: string;
  /** Releases what this test file holds. The server is shared and ends with the Jest run. */
  stop(): Promise<void>;
}

/**
 * As the embedded stack configures it (docs/design/embedded-stack.md#temporal-server-settings). In addition
 * new search attributes are visible at once, because tests create namespaces.
 */
const DYNAMIC_CONFIG = [
  'matching.useNewMatcher=true',
  'matching.enableFairness=true',
  'matching.numTaskqueueReadPartitions=1',
  'matching.numTaskqueueWritePartitions=1',
  'system.forceSearchAttributesCacheRefreshOnRead=true',
];
const DAY_MS = 24 * 3600 * 1000;
/** If the machine has no binary, the lookup builds one, which takes minutes, once. */
const LOOK_UP_MS = 15 * 60_000;
const START_MS = 30_000;

/**
 * The dev server of this Jest run, started by whichever test file asks first, and a fresh
 * namespace in it with the search attributes of every batch. Give `beforeAll` that calls it
 * {@link TEMPORAL_START_MS} of time.
 */
export async function startTemporal(): Promise<TestTemporal> {
  const { address } = await oncePerRun({
    name: 'temporal',
    start: startServer,
    startLimitMs: LOOK_UP_MS + START_MS,
  });
  const namespace = await openNamespace(address);
  return { address, namespace, stop: () => Promise.resolve() };
}

/** The longest a first {@link startTemporal} can take: a machine without a binary builds one. */
export const TEMPORAL_START_MS = LOOK_UP_MS + 2 * START_MS;

/** Runs `body` in a fresh namespace of the shared server. */
export async function withNamespace<T>(body: (temporal: TestTemporal) => Promise<T>): Promise<T> {
  const temporal = await startTemporal();
  try {
    return await body(temporal);
  } finally {
    await temporal.stop();
  }
}

/**
 * A server for one test file alone, with further dynamic configuration (`key=value`); it too ends
 * with the Jest run. `name` is its own among the servers of the run.
 */
export async function startOwnTemporal(
  name: string,
  dynamicConfig: readonly string[],
): Promise<{ readonly address: string }> {
  return startServer(fs.mkdtempSync(path.join(runFolder(), `${name}-`)), { name, dynamicConfig });
}

async function startServer(
  folder: string,
  own: { name: string; dynamicConfig: readonly string[] } = { name: 'temporal', dynamicConfig: [] },
): Promise<{ address: string }> {
  const say = (message: string) => void process.stderr.write(`${message}\n`);
  const binary = await findServer({ env: process.env, say });
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const dynamicConfig = [...DYNAMIC_CONFIG, ...own.dynamicConfig];
  const args = serverArguments({ folder, port, dynamicConfig });
  const logFile = spawnGuarded(own.name, binary.path, args);
  try {
    await until(() => answers(address), START_MS, `Temporal at ${address}`, 50);
  } catch (cause) {
    throw new Error(`Temporal did not start:\n${fs.readFileSync(logFile, 'utf8')}`, { cause });
  }
  return { address };
}

function serverArguments(options: {
  folder: string;
  port: number;
  dynamicConfig: readonly string[];
}): string[] {
  const { folder, port, dynamicConfig } = options;
  return [
    ...['server', 'start-dev', '--headless', '--ip', '127.0.0.1', '--port', String(port)],
    ...['--db-filename', path.join(folder, 'temporal.sqlite'), '--log-level', 'warn'],
    ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'],
    ...dynamicConfig.flatMap((entry) => ['--dynamic-config-value', entry]),
  ];
}

async function openNamespace(address: string): Promise<string> {
  const namespace = `test-${randomBytes(6).toString('hex')}`;
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs(DAY_MS),
    });
    const { temporal } = configSchema.parse({ temporal: { address, namespace } });
    await until(() => isPrepared(temporal), START_MS, `namespace ${namespace}`, 50);
  } finally {
    await connection.close();
  }
  return namespace;
}

/** A new namespace is not visible in every service of the server at once. */
async function isPrepared(config: Parameters<typeof prepareNamespace>[0]): Promise<boolean> {
  return prepareNamespace(config).then(
    () => true,
    () => false,
  );
}

async function answers(address: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: '1s' }).catch(() => null);
  await connection?.close();
  return connection !== null;
}
