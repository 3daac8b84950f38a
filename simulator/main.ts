import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { NightshiftError, isNightshiftError } from '../core/errors';
import { type AudioSimulator, startAudioSimulator } from './audio/audio-worker';
import { errorBody, readBody, sendJson } from './json-exchange';
import { createRoutes, type Routes } from './routes';
import { checkedSettings, type SimulatorSettings } from './settings';

/** Where the simulator listens, and its first settings. */
export interface SimulatorOptions extends SimulatorSettings {
  readonly host: string;
  /** 0 lets the system choose a free port. */
  readonly port: number;
  /** Port of the simulated audio worker; null for none, 0 for any free one. */
  readonly audioPort: number | null;
}

/** Default options: a fast model on loopback that never fails. With `slots`, an engine of one mid-size GPU. */
export const simulatorOptions: SimulatorOptions = {
  host: '127.0.0.1',
  port: 8001,
  audioPort: null,
  latencyMs: 50,
  latencyJitterMs: 10,
  outputTokens: 16,
  outputSigma: 0,
  seed: 0,
  maxConcurrency: 0,
  retryAfterSec: 1,
  slots: 0,
  maxQueue: 1_000,
  stepBaseMs: 8,
  stepGrowthMs: 0.1,
  prefillMsPerToken: 0.05,
  prefillTokensPerStep: 2_048,
  cacheTokens: 131_072,
  embeddingDimensions: 16,
  models: [],
  errorRate: 0,
  cutRate: 0,
  slowdown: 1,
  stall: false,
  notReady: false,
  refuse: false,
};

/** A running simulator. */
export interface Simulator {
  /** Base URL without a path, such as `http://127.0.0.1:8001`. */
  readonly url: string;
  /** The simulated audio worker; null without one. */
  readonly audio: AudioSimulator | null;
  /** Stops listening and closes open connections. */
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 256 * 1024 * 1024;
/** Longer than clients keep idle connections: if the server closes one first, a new request on it fails. */
const KEEP_ALIVE_MS = 75_000;

/**
 * Starts an OpenAI-compatible model server without a model (docs/design/simulator.md). Equal requests get
 * equal texts. The settings can be changed while it runs. The body member `simulate` of a request asks for a
 * fault, see {@link RequestedFault}.
 *
 * @throws invalid_request for an option out of range, port_in_use, config_invalid if it cannot listen
 *   on the host or port
 */
export async function startSimulator(options: Partial<SimulatorOptions> = {}): Promise<Simulator> {
  const { host, port, audioPort, ...settings } = { ...simulatorOptions, ...options };
  const checked = checkedSettings(settings);
  const audio = audioPort === null ? null : await startAudioSimulator({ host, port: audioPort });
  const routes = createRoutes(checked, audio);
  const server = createSimulatorServer(routes);
  await listen(server, host, port).catch((error: unknown) => {
    audio?.close();
    throw error;
  });
  const address = server.address();
  const boundPort = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    audio,
    close: () =>
      new Promise((resolve) => {
        audio?.close();
        routes.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function createSimulatorServer(routes: Routes): Server {
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    if (routes.refuses(path)) return void request.socket.destroy();
    const route = routes.find(request.method ?? '', path, request.headers);
    readBody(request, MAX_BODY_BYTES, (body) => {
      const answer = async (): Promise<void> => {
        if (body === null) throw tooLarge();
        if (route === undefined) throw noSuchRoute(request, path);
        await route({ request, response, body });
      };
      answer().catch((error: unknown) => sendError(response, error));
    });
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.on('connection', () => routes.traffic.connected());
  return server;
}

function tooLarge(): NightshiftError {
  const message = `the body is larger than ${MAX_BODY_BYTES} bytes`;
  return new NightshiftError('payload_too_large', message);
}

function noSuchRoute(request: IncomingMessage, path: string): NightshiftError {
  const message = `Invalid URL (${request.method} ${path})`;
  return new NightshiftError('not_found', message, { apiCode: 'unknown_url' });
}

function sendError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
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
