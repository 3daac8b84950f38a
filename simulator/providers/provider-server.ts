import type { IncomingMessage, ServerResponse } from 'node:http';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { SimulatorSettings } from '../settings';
import { CallFaults, errorAnswer, jsonAnswer, sendAnswer, serveWithFault } from './call-faults';
import { FileStore } from './file-store';
import { JobStore } from './job-store';
import { findRoute, type ApiRoute } from './openai/routes';
import {
  DEFAULT_PROVIDER_SETTINGS,
  changedProviderSettings,
  type ProviderCallName,
} from './settings';

/** One request with its whole body. */
export interface ProviderExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

const OPENAI = '/providers/openai/v1';
const CONFIG = '/simulator/providers/config';
const STATS = '/simulator/providers/stats';

/** Simulated batch APIs of providers, over one store of files, jobs and faults. */
export class ProviderServer {
  readonly #model: () => SimulatorSettings;
  readonly #files = new FileStore();
  readonly #jobs = new JobStore(DEFAULT_PROVIDER_SETTINGS);
  readonly #faults = new CallFaults();
  readonly #calls = new Map<ProviderCallName, number>();
  #settings = DEFAULT_PROVIDER_SETTINGS;

  /** @param model how the model answers now */
  constructor(model: () => SimulatorSettings) {
    this.#model = model;
  }

  /** Answers a request, or returns undefined if there is no such route. */
  find(method: string, path: string): ((exchange: ProviderExchange) => Promise<void>) | undefined {
    const control = this.#control(`${method} ${path}`);
    if (control !== undefined) return control;
    if (!path.startsWith(`${OPENAI}/`)) return undefined;
    const route = findRoute(method, path.slice(OPENAI.length));
    return route === null ? undefined : (exchange) => this.#serve(route, exchange);
  }

  #control(route: string): ((exchange: ProviderExchange) => Promise<void>) | undefined {
    switch (route) {
      case `GET ${CONFIG}`:
        return async ({ response }) => sendAnswer(response, jsonAnswer(this.#settings));
      case `PUT ${CONFIG}`:
        return async ({ response, body }) => {
          sendAnswer(response, jsonAnswer(this.#change(body)));
        };
      case `GET ${STATS}`:
        return async ({ response }) => sendAnswer(response, jsonAnswer(this.#stats()));
      default:
        return undefined;
    }
  }

  async #serve(route: ApiRoute, { request, response, body }: ProviderExchange): Promise<void> {
    const { name, id } = route;
    this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1);
    checkKey(request.headers.authorization, this.#settings.keys);
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const effect = await route.prepare(body, request.headers['content-type'] ?? '');
    await serveWithFault(response, this.#faults.take(name), () => {
      const state = { settings: this.#settings, files: this.#files, jobs: this.#jobs };
      const call = { id, query, body, nowMs: Date.now(), state, model: this.#model() };
      try {
        return effect(call);
      } catch (error) {
        if (isNightshiftError(error)) return errorAnswer(error);
        throw error;
      }
    });
  }

  #change(body: Buffer): unknown {
    const patch = parseJson(body);
    const settings = changedProviderSettings(this.#settings, patch);
    if (settings.faults !== this.#settings.faults) this.#faults.configure(settings.faults);
    this.#jobs.configure(settings, Date.now());
    this.#settings = settings;
    return settings;
  }

  #stats(): unknown {
    const nowMs = Date.now();
    const jobs = this.#jobs.all(nowMs);
    const creates: Record<string, number> = {};
    for (const { marker } of jobs) {
      if (marker !== null) creates[marker] = (creates[marker] ?? 0) + 1;
    }
    return {
      calls: Object.fromEntries(this.#calls),
      creates,
      jobs: jobs.map(({ id, marker, lines, createdMs, progress: { phase } }) => {
        return { id, nightshift_job: marker, status: phase, lines, created_at_ms: createdMs };
      }),
      files: this.#files.all(nowMs).map(({ id, purpose, bytes }) => {
        return { id, purpose, bytes: bytes.length };
      }),
    };
  }
}

function checkKey(authorization: string | undefined, keys: readonly string[]): void {
  const key = authorization?.replace(/^Bearer /i, '') ?? '';
  if (keys.length === 0 || keys.includes(key)) return;
  const message = `Incorrect API key provided: ${key}.`;
  throw new NightshiftError('unauthorized', message, { apiCode: 'invalid_api_key' });
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (cause) {
    throw new NightshiftError('invalid_request', 'the settings must be JSON', { cause });
  }
}
