import OpenAI from 'openai';
import type { Environment } from '../../platform/config';

/** What requests are sent with. */
export interface OpenAiOptions {
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** The environment, from which the SDK reads keys and headers by itself. */
  readonly env: Environment;
  /** Whether those may be sent. False for an address that the user did not name. */
  readonly usesEnvironment: boolean;
}

/** The official SDK, set up to send no secrets except those given here. */
export function openOpenAi(options: OpenAiOptions): OpenAI {
  const { baseUrl, apiKey, headers, timeoutMs, env, usesEnvironment } = options;
  return new OpenAI({
    baseURL: baseUrl,
    // The SDK requires a key; a server without authentication ignores it.
    apiKey: apiKey ?? 'none',
    // Otherwise the SDK would send OPENAI_ADMIN_KEY instead of the API key.
    adminAPIKey: null,
    ...(usesEnvironment ? {} : { organization: null, project: null }),
    defaultHeaders: { ...(usesEnvironment ? {} : withoutCustomHeaders(env)), ...headers },
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  });
}

/** The SDK adds the lines of OPENAI_CUSTOM_HEADERS to every request; `null` removes one. */
function withoutCustomHeaders(environment: Environment): Record<string, null> {
  const lines = (environment['OPENAI_CUSTOM_HEADERS'] ?? '').split('\n');
  const names = lines
    .filter((line) => line.includes(':'))
    .map((line) => line.split(':', 1)[0] ?? '');
  return Object.fromEntries(names.map((name) => [name.trim(), null]));
}
