import { readFileSync } from 'node:fs';
import { isMap, isScalar, LineCounter, parse, parseDocument, type Document } from 'yaml';
import { isJsonObject } from '../core/openai/json-object';

/** Environment variables by name, as `process.env` holds them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of one source, not yet checked. */
export interface ConfigLayer {
  readonly values: Record<string, unknown>;
  /** The place where `path`, or the nearest setting above it, is written: `nightshift.yaml:12`. */
  origin(path: readonly PropertyKey[]): string;
}

/** The settings of one file, or why there are none. */
export interface FileLayer extends ConfigLayer {
  /** Problems of the file itself, one line each: it cannot be read, or it is not YAML. */
  readonly problems: readonly string[];
}

/** Reads a YAML (or JSON) file and keeps the line of every key. Never throws. */
export function readFileLayer(file: string): FileLayer {
  const none = { values: {}, origin: () => file };
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return { ...none, problems: [`${file}: cannot be read: ${(error as Error).message}`] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const problems = document.errors.map(
    (error) => `${file}:${error.linePos?.[0].line ?? 1}: ${error.message.split('\n', 1)[0]}`,
  );
  if (problems.length > 0) return { ...none, problems };
  const values: unknown = document.toJS() ?? {};
  if (!isJsonObject(values)) {
    return { ...none, problems: [`${file}:1: expected settings such as "api:"`] };
  }
  return { values, problems, origin: (path) => `${file}:${lineOf(document, lines, path)}` };
}

/** Line of the deepest key of `path` that the document holds. */
function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const step of path) {
    if (!isMap(node)) break;
    const pair = node.items.find(
      (item) => isScalar(item.key) && String(item.key.value) === String(step),
    );
    if (pair === undefined) break;
    offset = (isScalar(pair.key) ? pair.key.range?.[0] : undefined) ?? offset;
    node = pair.value;
  }
  return lines.linePos(offset).line;
}

const PREFIX = 'NIGHTSHIFT__';

/**
 * Settings of the environment: `NIGHTSHIFT__CONCURRENCY__GLOBAL=200` for every key of the schema, and,
 * with lower precedence, the common TEMPORAL_*, DATABASE_URL and PG* variables. Lists and objects are
 * written as JSON. An empty variable counts as not set (docs/design/configuration.md#environment-variables).
 */
export function readEnvironmentLayer(env: Environment): ConfigLayer {
  const values: Record<string, unknown> = {};
  const origins = new Map<string, string>();
  const put = (path: readonly string[], value: unknown, name: string): void => {
    setIn(values, path, value);
    origins.set(path.join('.'), name);
  };
  for (const { path, value, name } of commonVariables(env)) put(path, value, name);
  // Shorter names first: an object is set before the settings in it.
  const names = Object.keys(env).sort((a, b) => a.length - b.length);
  for (const name of names) {
    const text = env[name];
    if (!name.startsWith(PREFIX) || text === undefined || text === '') continue;
    put(name.slice(PREFIX.length).toLowerCase().split('__'), fromText(text), name);
  }
  return { values, origin: (path) => nearestOrigin(origins, path) };
}

function nearestOrigin(origins: ReadonlyMap<string, string>, path: readonly PropertyKey[]): string {
  for (let length = path.length; length > 0; length--) {
    const name = origins.get(path.slice(0, length).map(String).join('.'));
    if (name !== undefined) return `environment ${name}`;
  }
  return 'environment';
}

interface CommonVariable {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly name: string;
}

const COMMON: readonly (readonly [string, readonly string[]])[] = [
  ['TEMPORAL_ADDRESS', ['temporal', 'address']],
  ['TEMPORAL_NAMESPACE', ['temporal', 'namespace']],
  ['TEMPORAL_API_KEY', ['temporal', 'api_key']],
  ['DATABASE_URL', ['postgres', 'url']],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', ['tracing', 'otlp_endpoint']],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', ['tracing', 'protocol']],
];

function commonVariables(env: Environment): CommonVariable[] {
  const found: CommonVariable[] = [];
  const url = postgresUrl(env);
  if (url !== null) found.push({ path: ['postgres', 'url'], value: url, name: 'PGHOST' });
  for (const [name, path] of COMMON) {
    const value = env[name];
    if (value !== undefined && value !== '') found.push({ path, value, name });
  }
  return [...found, ...temporalTls(env)];
}

/** Temporal's own variables for TLS. Each of them turns TLS on; TEMPORAL_TLS=false turns it off. */
const TLS_VARIABLES: Readonly<Record<string, string>> = {
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: 'ca_cert_file',
  TEMPORAL_TLS_SERVER_CA_CERT_DATA: 'ca_cert_data',
  TEMPORAL_TLS_CLIENT_CERT_PATH: 'client_cert_file',
  TEMPORAL_TLS_CLIENT_CERT_DATA: 'client_cert_data',
  TEMPORAL_TLS_CLIENT_KEY_PATH: 'client_key_file',
  TEMPORAL_TLS_CLIENT_KEY_DATA: 'client_key_data',
  TEMPORAL_TLS_SERVER_NAME: 'server_name',
  TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: 'disable_host_verification',
};

function temporalTls(env: Environment): CommonVariable[] {
  const path = ['temporal', 'tls'];
  const name = 'TEMPORAL_TLS';
  const wanted = env[name] ?? '';
  if (wanted === 'false') return [{ path, value: false, name }];
  const found: CommonVariable[] = [];
  // An empty object turns TLS on and keeps the TLS settings of the file.
  if (wanted !== '') found.push({ path, value: wanted === 'true' ? {} : wanted, name });
  for (const [variable, key] of Object.entries(TLS_VARIABLES)) {
    const text = env[variable];
    if (text === undefined || text === '') continue;
    const value = key === 'disable_host_verification' ? fromText(text) : text;
    found.push({ path: [...path, key], value, name: variable });
  }
  return found;
}

/** The URL that libpq's variables describe; null unless PGHOST is set. */
function postgresUrl(env: Environment): string | null {
  const host = env['PGHOST'];
  if (host === undefined || host === '') return null;
  const user = encodeURIComponent(env['PGUSER'] || 'postgres');
  const password = env['PGPASSWORD'] ? `:${encodeURIComponent(env['PGPASSWORD'])}` : '';
  const database = encodeURIComponent(env['PGDATABASE'] || env['PGUSER'] || 'postgres');
  const query = env['PGSSLMODE'] ? `?sslmode=${encodeURIComponent(env['PGSSLMODE'])}` : '';
  const where = host.startsWith('/') ? encodeURIComponent(host) : host;
  return `postgres://${user}${password}@${where}:${env['PGPORT'] || '5432'}/${database}${query}`;
}

/** Parses booleans, lists and objects; everything else stays text, which the schema parses. */
function fromText(text: string): unknown {
  if (/^(true|false)$/.test(text)) return text === 'true';
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return parse(text) as unknown;
  } catch {
    return text;
  }
}

/** `base` with the values of `over`: objects are merged, everything else is replaced. Changes neither. */
export function mergeValues(
  base: Record<string, unknown>,
  over: Record<string, unknown>,
): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const below = merged[key];
    merged[key] = isJsonObject(below) && isJsonObject(value) ? mergeValues(below, value) : value;
  }
  return merged;
}

/** Value at `path`, or `undefined`. */
export function getIn(values: unknown, path: readonly PropertyKey[]): unknown {
  let value = values;
  for (const step of path) {
    if (Array.isArray(value)) value = value[Number(step)];
    else if (isJsonObject(value)) value = value[String(step)];
    else return undefined;
  }
  return value;
}

function setIn(values: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key = '', ...rest] = path;
  if (rest.length === 0) {
    values[key] = value;
    return;
  }
  const below = values[key];
  const folder: Record<string, unknown> = isJsonObject(below) ? below : {};
  values[key] = folder;
  setIn(folder, rest, value);
}
