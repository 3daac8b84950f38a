import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { SimulatorSettings } from '../settings';
import { jsonAnswer } from './answer';
import { ANTHROPIC_API } from './anthropic/routes';
import { AWS_TRANSCRIBE_API } from './aws-transcribe/routes';
import { AZURE_BLOB_API } from './azure-blob/routes';
import { AZURE_SPEECH_API } from './azure-speech/routes';
import { BEDROCK_API } from './bedrock/routes';
import { CallFaults, sendAnswer, serveWithFault } from './call-faults';
import type { ApiEffect, ApiRoute, FakeApi } from './fake-api';
import { FileStore } from './file-store';
import { GCS_API } from './gcs/routes';
import { GEMINI_API } from './gemini/routes';
import { GOOGLE_SPEECH_API } from './google-speech/routes';
import { GOOGLE_OAUTH_API } from './google/oauth-api';
import { GROQ_API } from './groq/variant';
import { JobStore } from './job-store';
import { MISTRAL_API } from './mistral/variant';
import { OPENAI_API } from './openai/routes';
import { S3_API } from './s3/routes';
import { SARVAM_API } from './sarvam/routes';
import {
  DEFAULT_PROVIDER_SETTINGS,
  changedProviderSettings,
  type ProviderCallName,
} from './settings';
import { TOGETHER_API } from './together/variant';
import { VERTEX_API } from './vertex/routes';

/** One request with its whole body. */
export interface ProviderExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

const ROOT = '/providers/';
const APIS: readonly FakeApi[] = [
  OPENAI_API,
  MISTRAL_API,
  GROQ_API,
  TOGETHER_API,
  ANTHROPIC_API,
  S3_API,
  AWS_TRANSCRIBE_API,
  AZURE_BLOB_API,
  AZURE_SPEECH_API,
  BEDROCK_API,
  SARVAM_API,
  GCS_API,
  GEMINI_API,
  GOOGLE_OAUTH_API,
  VERTEX_API,
  GOOGLE_SPEECH_API,
];
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
  find(
    method: string,
    path: string,
    headers: IncomingHttpHeaders,
  ): ((exchange: ProviderExchange) => Promise<void>) | undefined {
    const control = this.#control(`${method} ${path}`);
    if (control !== undefined) return control;
    const api = APIS.find(({ prefix }) => path.startsWith(`${ROOT}${prefix}/`));
    if (api === undefined) return undefined;
    const route = api.findRoute(method, path.slice(ROOT.length + api.prefix.length), headers);
    return route === null ? undefined : (exchange) => this.#serve(api, route, exchange);
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

  async #serve(
    api: FakeApi,
    route: ApiRoute,
    { request, response, body }: ProviderExchange,
  ): Promise<void> {
    const { name, params } = route;
    const { headers } = request;
    this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1);
    const baseUrl = `http://${headers.host ?? 'localhost'}${ROOT}${api.prefix}`;
    const query = new URL(request.url ?? '/', baseUrl).searchParams;
    const refusal = refusedKey(api.keyOf(headers, query), this.#settings.keys);
    if (refusal !== null) return sendAnswer(response, api.errorAnswer(refusal));
    const effect = await prepared(route, body, headers['content-type'] ?? '');
    await serveWithFault(response, this.#faults.take(name), {
      errorOf: (error) => api.errorAnswer(error),
      effect: () => {
        const state = { settings: this.#settings, files: this.#files, jobs: this.#jobs };
        const place = { params, id: params[0] ?? '', query, headers, baseUrl };
        try {
          return effect({ ...place, body, nowMs: Date.now(), state, model: this.#model() });
        } catch (error) {
          if (isNightshiftError(error)) return api.errorAnswer(error);
          throw error;
        }
      },
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
    const jobs = this.#jobs.created(nowMs);
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

/** An effect that throws, if the body cannot be read. */
async function prepared(route: ApiRoute, body: Buffer, contentType: string): Promise<ApiEffect> {
  try {
    return await route.prepare(body, contentType);
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Null if the key is one of `keys`, or any will do. */
function refusedKey(key: string | null, keys: readonly string[]): NightshiftError | null {
  if (key === null || keys.length === 0 || keys.includes(key)) return null;
  const message = `Incorrect API key provided: ${key}.`;
  return new NightshiftError('unauthorized', message, { apiCode: 'invalid_api_key' });
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (cause) {
    throw new NightshiftError('invalid_request', 'the settings must be JSON', { cause });
  }
}
