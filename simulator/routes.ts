import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { NightshiftError } from '../core/errors';
import { isJsonObject } from '../core/openai/json-object';
import { ANSWER_BUILDERS } from './answers/builders';
import type { AudioSimulator } from './audio/audio-worker';
import { EngineLoop } from './engine-loop';
import { sendJson } from './json-exchange';
import { LatencyTimers } from './latency';
import { ModelMetrics } from './metrics';
import { answerModelCall, type ModelBackend } from './model-calls';
import { ProviderServer } from './providers/provider-server';
import { changedSettings, settingsToWire, type SimulatorSettings } from './settings';
import { Traffic } from './traffic';

/** One request with its whole body. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

/** The routes of one simulator, and the state that they share. */
export interface Routes {
  /** Answers a request, or returns undefined if there is no such route. */
  find(
    method: string,
    path: string,
    headers: IncomingHttpHeaders,
  ): ((exchange: Exchange) => void | Promise<void>) | undefined;
  /** Whether the connection of a request to this path is closed without an answer. */
  refuses(path: string): boolean;
  readonly traffic: Traffic;
  /** Stops the engine. */
  close(): void;
}

const SETTINGS_PATHS = '/simulator/';

/** Routes that begin with these settings. */
export function createRoutes(
  initial: SimulatorSettings,
  audio: Pick<AudioSimulator, 'settings' | 'stats' | 'configure'> | null,
): Routes {
  const traffic = new Traffic();
  const loop = new EngineLoop(initial);
  const latency = new LatencyTimers();
  const metrics = new ModelMetrics(() => {
    const { waiting, ...engine } = loop.snapshot();
    return { ...engine, waiting, running: traffic.inFlight - waiting };
  });
  let backend: ModelBackend = { settings: initial, traffic, latency, loop, metrics };
  latency.setFaults(initial);
  const providers = new ProviderServer(() => backend.settings);

  const change = (body: Buffer): void => {
    const { ofServer, ofAudio } = withoutAudio(parseJson(body), audio !== null);
    const settings = changedSettings(backend.settings, ofServer);
    if (ofAudio !== undefined) audio?.configure(ofAudio);
    backend = { ...backend, settings };
    latency.setFaults(settings);
    loop.configure(settings);
  };
  const wireSettings = () => ({
    ...settingsToWire(backend.settings),
    ...(audio === null ? {} : { audio: audio.settings }),
  });
  const routes: Record<string, (exchange: Exchange) => void> = {
    'GET /health': ({ response }) => sendHealth(response, backend.settings),
    'GET /metrics': ({ response }) => sendMetrics(response, backend),
    'GET /v1/models': ({ response }) => sendJson(response, 200, modelList(backend.settings)),
    'GET /simulator/stats': ({ response }) =>
      sendJson(response, 200, {
        ...traffic.toWire(),
        ...(audio === null ? {} : { audio: audio.stats }),
      }),
    'GET /simulator/config': ({ response }) => {
      sendJson(response, 200, wireSettings());
    },
    'PUT /simulator/config': ({ response, body }) => {
      change(body);
      sendJson(response, 200, wireSettings());
    },
  };
  for (const endpoint of ANSWER_BUILDERS.keys()) {
    routes[`POST ${endpoint}`] = ({ request, response, body }) => {
      const given = request.headers['x-request-id'];
      const requestId = typeof given === 'string' ? given : undefined;
      answerModelCall({ endpoint, requestId, body, response }, backend);
    };
  }
  return {
    find: (method, path, headers) =>
      routes[`${method} ${path}`] ?? providers.find(method, path, headers),
    refuses: (path) => backend.settings.refuse && !path.startsWith(SETTINGS_PATHS),
    traffic,
    close: () => loop.close(),
  };
}

function sendHealth(response: ServerResponse, { notReady }: SimulatorSettings): void {
  if (notReady) sendJson(response, 503, { status: 'not ready' });
  else sendJson(response, 200, { status: 'ok' });
}

function sendMetrics(response: ServerResponse, { metrics, settings }: ModelBackend): void {
  const [model = ''] = namesOf(settings);
  metrics.text(model).then(
    (text) => {
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
      response.end(text);
    },
    (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
  );
}

function modelList(settings: SimulatorSettings): unknown {
  const data = namesOf(settings).map((id) => {
    return { id, object: 'model', created: 0, owned_by: 'simulator' };
  });
  return { object: 'list', data };
}

function namesOf({ models }: SimulatorSettings): readonly string[] {
  return models.length === 0 ? ['simulated-model'] : models;
}

/** Takes the member `audio` out of settings, if there is an audio worker that has them. */
function withoutAudio(patch: unknown, hasAudio: boolean): { ofServer: unknown; ofAudio?: unknown } {
  if (!hasAudio || !isJsonObject(patch)) return { ofServer: patch };
  const { audio: ofAudio, ...ofServer } = patch;
  return { ofServer, ofAudio };
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new NightshiftError('invalid_request', 'the settings must be JSON', { cause });
  }
}
