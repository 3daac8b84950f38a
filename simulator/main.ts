import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { NightshiftError, isNightshiftError } from '../core/errors';
import { ANSWER_BUILDERS } from './answers';
import { errorBody, readBody, sendJson } from './http';
import { answerModelCall } from './model-endpoint';
import {
  changedSettings,
  checkedSettings,
  settingsToWire,
  type SimulatorSettings,
} from './settings';
import { Traffic } from './traffic';

/** Where the simulator listens, and its first settings. */
export interface SimulatorOptions extends SimulatorSettings {
  readonly host: string;
  /** 0 lets the system choose a free port. */
  readonly port: number;
}

/** Default options: a fast model on loopback that never fails. */
export const simulatorOptions: SimulatorOptions = {
  host: '127.0.0.1',
  port: 8001,
  latencyMs: 50,
  latencyJitterMs: 10,
  outputTokens: 16,
  errorRate: 0,
  maxConcurrency: 0,
  retryAfterSec: 1,
  embeddingDimensions: 16,
  models: [],
};

/** A running simulator. */
export interface Simulator {
  /** Base URL without a path, such as `http://127.0.0.1:8001`. */
  readonly url: string;
  /** Stops listening and closes open connections. */
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 256 * 1024 * 1024;
/** Longer than clients keep idle connections: if the server closes one first, a new request on it fails. */
const KEEP_ALIVE_MS = 75_000;

/**
 * Starts an OpenAI-compatible model server without a model. It has the endpoints of `ANSWER_BUILDERS`,
 * `GET /v1/models`, `GET /health`, `GET` and `PUT /simulator/config` (settings in snake_case; a PUT changes
 * only those it names) and `GET /simulator/stats`. Equal requests get equal answers. The body member
 * `simulate` of a request asks for a fault, see {@link RequestedFault}.
 *
 * @throws invalid_request for an option out of range, port_in_use, config_invalid if it cannot listen
 *   on the host or port
 */
export async function startSimulator(options: Partial<SimulatorOptions> = {}): Promise<Simulator> {
  const { host, port, ...settings } = { ...simulatorOptions, ...options };
  const server = createSimulatorServer(checkedSettings(settings));
  await listen(server, host, port);
  const address = server.address();
  const boundPort = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly body: Buffer;
}

function createSimulatorServer(initial: SimulatorSettings): Server {
  const traffic = new Traffic();
  let settings = initial;

  const routes: Record<string, (exchange: Exchange) => void> = {
    'GET /health': ({ response }) => sendJson(response, 200, { status: 'ok' }),
    'GET /v1/models': ({ response }) => sendJson(response, 200, modelList(settings)),
    'GET /simulator/stats': ({ response }) => sendJson(response, 200, traffic.toWire()),
    'GET /simulator/config': ({ response }) => sendJson(response, 200, settingsToWire(settings)),
    'PUT /simulator/config': ({ response, body }) => {
      settings = changedSettings(settings, parseJson(body));
      sendJson(response, 200, settingsToWire(settings));
    },
  };
  for (const endpoint of ANSWER_BUILDERS.keys()) {
    routes[`POST ${endpoint}`] = ({ request, response, body }) => {
      const given = request.headers['x-request-id'];
      const requestId = typeof given === 'string' ? given : undefined;
      answerModelCall({ endpoint, requestId, body, response, settings, traffic });
    };
  }
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const route = routes[`${request.method} ${path}`];
    readBody(request, MAX_BODY_BYTES, (body) => {
      if (body === null)
        return sendError(
          response,
          new NightshiftError(
            'payload_too_large',
            `the body is larger than ${MAX_BODY_BYTES} bytes`,
          ),
        );
      if (route === undefined) return sendError(response, noSuchRoute(request, path));
      try {
        route({ request, response, path, body });
      } catch (error) {
        sendError(response, error);
      }
    });
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.on('connection', () => traffic.connected());
  return server;
}

function modelList({ models }: SimulatorSettings): unknown {
  const names = models.length === 0 ? ['simulated-model'] : models;
  const data = names.map((id) => ({ id, object: 'model', created: 0, owned_by: 'simulator' }));
  return { object: 'list', data };
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new NightshiftError('invalid_request', 'the settings must be JSON', { cause });
  }
}

function noSuchRoute(request: IncomingMessage, path: string): NightshiftError {
  const message = `Invalid URL (${request.method} ${path})`;
  return new NightshiftError('not_found', message, { apiCode: 'unknown_url' });
}

function sendError(response: ServerResponse, error: unknown): void {
  const known = isNightshiftError(error)
    ? error
    : new NightshiftError('internal', 'the simulator failed: this is a bug', { cause: error });
  sendJson(response, known.httpStatus, errorBody(known));
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isTaken = error.code === 'EADDRINUSE';
      const advice = isTaken ? 'choose another port' : 'choose another --host or --port';
      const message = `cannot listen on ${host}:${port} (${error.code}): ${advice}`;
      const code = isTaken ? 'port_in_use' : 'config_invalid';
      reject(new NightshiftError(code, message, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
}
