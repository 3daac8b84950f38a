import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isServing } from './grpc-health';
import type { ComponentSpec } from '../supervision/component';
import type { ServerBinary } from './server-binary';

/** Kept equal to what the workflows upsert (design §5); the server makes them with a new database. */
const SEARCH_ATTRIBUTES = [
  'BatchTenant=Keyword',
  'BatchPhase=Keyword',
  'BatchStopReason=Keyword',
  'BatchEndpoint=Keyword',
  'BatchModels=KeywordList',
  'BatchDeadline=Datetime',
  'BatchRequests=Int',
];
/** Server 1.29 has fairness behind the first two; later ones accept the same words (temporal.md §1.5). */
const DYNAMIC_CONFIG = ['matching.useNewMatcher=true', 'matching.enableFairness=true'];
const SERVICE = 'temporal.api.workflowservice.v1.WorkflowService';

export interface TemporalComponentOptions {
  readonly binary: ServerBinary;
  /** Folder of the database and the version note. */
  readonly folder: string;
  readonly port: number;
  /** Null starts the server without its UI. */
  readonly uiPort: number | null;
  readonly env: Readonly<Record<string, string>>;
}

/** Temporal's dev server on a SQLite file in WAL mode, loopback only, with its UI unless that is turned off. */
export function temporalComponent(options: TemporalComponentOptions): ComponentSpec {
  const { binary, folder, port, env } = options;
  noteVersion(folder, binary.serverVersion);
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
 * Server version that made the database in `folder`; `null` for a new one. Another version may not
 * open the file.
 */
export function notedVersion(folder: string): string | null {
  const note = join(folder, 'version');
  if (!existsSync(join(folder, 'temporal.db')) || !existsSync(note)) return null;
  return readFileSync(note, 'utf8').trim() || null;
}

function noteVersion(folder: string, version: string): void {
  if (notedVersion(folder) === null)
    writeFileSync(join(folder, 'version'), `${version}\n`, { mode: 0o600 });
}
