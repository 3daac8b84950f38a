import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listenFault } from './listen-fault';
import type { Logger } from './logger';
import type { Registry } from './metrics';
import type { OriginCheck } from './own-names';
import type { RunningProcess } from './process';
import { tryCheck, type ReadinessCheck } from './readiness';

export interface ObservabilityOptions {
  readonly host: string;
  /** 0 takes any free port; the server's `url` contains it. */
  readonly port: number;
  /** The series of this process. */
  readonly registry: Pick<Registry, 'metrics' | 'contentType'>;
  /** Series of a library in the Prometheus text format; the page leaves them out if this rejects. */
  readonly foreignMetrics?: () => Promise<string>;
  /** Further pages with JSON, by path. They may be promises. */
  readonly pages?: Readonly<Record<string, () => unknown>>;
  /** Longest wait for one check, ms. */
  readonly checkTimeoutMs?: number;
  /** Refuses requests of foreign web pages; see `originCheck`. Without it every request is answered. */
  readonly originCheck?: OriginCheck;
  /** Setting to name if the port is taken, e.g. `worker.observability_port`. */
  readonly portSetting?: string;
  /** Setting to name if nothing can listen on the host. */
  readonly hostSetting?: string;
  /** Receives errors. Responses do not show them, because everyone who reaches the port can read those. */
  readonly logger?: Pick<Logger, 'error'>;
}

/** The running server; `close` also ends idle connections. */
export interface ObservabilityServer extends RunningProcess {
  /** While the process starts, `/ready` answers 503 with this: what the process waits for. */
  markStarting(reason: string): void;
  /** From now on `/ready` runs these checks, which have names such as `postgres`. */
  markStarted(checks: Readonly<Record<string, ReadinessCheck>>): void;
  /** From now on `/ready` answers 503 with `reason` (a drain, a tripped guard). The first reason stays. */
  markNotReady(reason: string): void;
}

/**
 * Serves `/health` (200 while the process lives), `/ready` (200 if every check passes, else 503 with the
 * failed checks) and `/metrics` (Prometheus text) on a separate port. Not ready until `markStarted`
 * (docs/design/processes.md#start).
 *
 * @throws port_in_use, or config_invalid if nothing can listen on `host` or `port`
 */
export async function startObservabilityServer(
  options: ObservabilityOptions,
): Promise<ObservabilityServer> {
  const state: ProcessState = { starting: 'starting', notReady: null, checks: {} };
  const timeouts = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
  const server = createServer(timeouts, (request, response) => {
    answer(request, options, state).then(
      (reply) => send(response, reply),
      (error: unknown) => {
        options.logger?.error({ err: error, path: request.url }, 'observability request failed');
        send(response, { status: 500, type: JSON_TYPE, body: '{"status":"error"}' });
      },
    );
  });
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${options.host}:${port}`,
    markStarting: (reason) => void (state.starting = reason),
    markStarted: (checks) => Object.assign(state, { starting: null, checks }),
    markNotReady: (reason) => void (state.notReady ??= reason),
    close: () => closeServer(server),
  };
}

/** Probes and scrapers send one short request at a time. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 256;

interface ProcessState {
  /** What a process that is not started waits for. */
  starting: string | null;
  notReady: string | null;
  checks: Readonly<Record<string, ReadinessCheck>>;
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const JSON_TYPE = 'application/json';
/** With the pid, a supervisor detects that another process answers on the same port. */
const HEALTHY = JSON.stringify({ status: 'ok', pid: process.pid });

async function answer(
  request: IncomingMessage,
  options: ObservabilityOptions,
  state: ProcessState,
): Promise<Reply> {
  const fault = originFault(request, options);
  if (fault !== null) return errorReply(403, fault);
  const path = (request.url ?? '').split('?', 1)[0];
  switch (path) {
    case '/health':
      return { status: 200, type: JSON_TYPE, body: HEALTHY };
    case '/ready':
      return readiness(options, state);
    case '/metrics': {
      const [own, foreign] = await Promise.all([
        options.registry.metrics(),
        foreignSeries(options),
      ]);
      return { status: 200, type: options.registry.contentType, body: own + foreign };
    }
    default:
      return page(options, path ?? '');
  }
}

async function page({ pages = {} }: ObservabilityOptions, path: string): Promise<Reply> {
  const read = Object.hasOwn(pages, path) ? pages[path] : undefined;
  if (read === undefined) return { status: 404, type: JSON_TYPE, body: '{"status":"not_found"}' };
  return { status: 200, type: JSON_TYPE, body: JSON.stringify(await read()) };
}

/** A scrape without the series of a library is better than none. */
async function foreignSeries({ foreignMetrics, logger }: ObservabilityOptions): Promise<string> {
  if (foreignMetrics === undefined) return '';
  return foreignMetrics().catch((error: unknown) => {
    logger?.error({ err: error }, 'metrics of a library could not be read');
    return '';
  });
}

function originFault({ headers }: IncomingMessage, options: ObservabilityOptions): string | null {
  const { host, origin } = headers;
  const site = headers['sec-fetch-site'];
  const fetchSite = Array.isArray(site) ? site.join(', ') : site;
  return options.originCheck?.({ host, origin, fetchSite }) ?? null;
}

function errorReply(status: number, message: string): Reply {
  const error = { message, type: 'invalid_request_error', param: null, code: null };
  return { status, type: JSON_TYPE, body: JSON.stringify({ error }) };
}

async function readiness(
  { checkTimeoutMs = 2_000 }: ObservabilityOptions,
  { starting, notReady, checks }: ProcessState,
): Promise<Reply> {
  const reason = notReady ?? starting;
  if (reason !== null) return readyReply(503, { process: reason });
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [
      name,
      await tryCheck(() => withoutReason(check), checkTimeoutMs),
    ]),
  );
  const failed = results.some(([, result]) => result !== 'ok');
  return readyReply(failed ? 503 : 200, Object.fromEntries(results) as Record<string, string>);
}

/** Hides the error, which may name hosts, users and paths; the dependency watch logs it. */
async function withoutReason(check: ReadinessCheck): Promise<void> {
  try {
    await check();
  } catch (error) {
    throw new Error('failed, see the log', { cause: error });
  }
}

function readyReply(status: number, checks: Record<string, string>): Reply {
  const word = status === 200 ? 'ready' : 'not_ready';
  const body = JSON.stringify({ status: word, pid: process.pid, checks });
  return { status, type: JSON_TYPE, body };
}

function send(response: ServerResponse, reply: Reply): void {
  response.writeHead(reply.status, { 'content-type': reply.type });
  response.end(reply.body);
}

function listen(server: Server, options: ObservabilityOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, options)));
    server.listen(options.port, options.host, resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, options: ObservabilityOptions): Error {
  const { host, port, portSetting = 'observability_port' } = options;
  const hostSetting = options.hostSetting ?? 'observability_host';
  return listenFault(error, { host, port, portSetting, hostSetting });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
