import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ComponentSpec } from '../supervision/component';
import { isServing } from './grpc-health';
import type { ServerBinary } from './server-binary';

/**
 * The search attributes that the workflows upsert (docs/design/temporal.md#search-attributes). The server
 * creates them only in a new database.
 */
const SEARCH_ATTRIBUTES = [
  'BatchTenant=Keyword',
  'BatchPhase=Keyword',
  'BatchStopReason=Keyword',
  'BatchEndpoint=Keyword',
  'BatchModels=KeywordList',
  'BatchDeadline=Datetime',
  'BatchRequests=Int',
  'BatchProviders=KeywordList',
];
/** Server 1.29 needs both for fairness; later servers accept them too. */
const DYNAMIC_CONFIG = ['matching.useNewMatcher=true', 'matching.enableFairness=true'];
const SERVICE = 'temporal.api.workflowservice.v1.WorkflowService';

/** How to run Temporal's development server. */
export interface TemporalComponentOptions {
  readonly binary: ServerBinary;
  /** Folder of the database and of the file that names its version. */
  readonly folder: string;
  readonly port: number;
  /** `null` starts the server without its UI. */
  readonly uiPort: number | null;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Temporal's development server on loopback, with a SQLite database in WAL mode. With SQLite's defaults it
 * could run only a few activities per second (docs/design/embedded-stack.md#temporal-server-settings).
 */
export function temporalComponent(options: TemporalComponentOptions): ComponentSpec {
  const { binary, folder, port, env } = options;
  recordVersion(folder, binary.serverVersion);
  return {
    name: 'temporal',
    command: binary.path,
    args: serverArguments(options),
    env,
    cwd: folder,
    isReady: () => isServing(`127.0.0.1:${port}`, SERVICE),
    readyTimeoutMs: 60_000,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 15_000,
    killSignal: 'SIGKILL',
  };
}

function serverArguments({ folder, port, uiPort }: TemporalComponentOptions): string[] {
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1'],
    ...['--port', String(port)],
    ...(uiPort === null ? ['--headless'] : ['--ui-port', String(uiPort)]),
    ...['--db-filename', join(folder, 'temporal.db')],
    ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'],
    ...['--log-level', 'warn', '--log-format', 'json'],
    ...SEARCH_ATTRIBUTES.flatMap((attribute) => ['--search-attribute', attribute]),
    ...DYNAMIC_CONFIG.flatMap((entry) => ['--dynamic-config-value', entry]),
  ];
}

/**
 * Server version that created the database in `folder`; `null` if there is no database yet. Another
 * version may fail to open the file.
 */
export function databaseVersion(folder: string): string | null {
  const record = join(folder, 'version');
  if (!existsSync(join(folder, 'temporal.db')) || !existsSync(record)) return null;
  return readFileSync(record, 'utf8').trim() || null;
}

function recordVersion(folder: string, version: string): void {
  if (databaseVersion(folder) === null)
    writeFileSync(join(folder, 'version'), `${version}\n`, { mode: 0o600 });
}
