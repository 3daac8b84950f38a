import OpenAI from 'openai';
import type { Environment } from '../../platform/config';

export interface OpenAiOptions {
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** The environment, out of which the SDK takes keys and headers by itself. */
  readonly env: Environment;
  /** Whether those may be sent there: never to an address that the user did not choose. */
  readonly takesEnvironment: boolean;
}

/** The official SDK, which sends what it is given here and nothing else that may be secret. */
export function openOpenAi(options: OpenAiOptions): OpenAI {
  const { baseUrl, apiKey, headers, timeoutMs, env, takesEnvironment } = options;
  return new OpenAI({
    baseURL: baseUrl,
    // The SDK insists on a key; a server that asks for none does not look at it.
    apiKey: apiKey ?? 'none',
    // The SDK would send OPENAI_ADMIN_KEY in place of the API key.
    adminAPIKey: null,
    ...(takesEnvironment ? {} : { organization: null, project: null }),
    defaultHeaders: { ...(takesEnvironment ? {} : withoutCustomHeaders(env)), ...headers },
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  });
}

/** The SDK adds the lines of OPENAI_CUSTOM_HEADERS to every request; `null` takes one away again. */
function withoutCustomHeaders(environment: Environment): Record<string, null> {
  const lines = (environment['OPENAI_CUSTOM_HEADERS'] ?? '').split('\n');
  const names = lines
    .filter((line) => line.includes(':'))
    .map((line) => line.split(':', 1)[0] ?? '');
  return Object.fromEntries(names.map((name) => [name.trim(), null]));
}
