import type OpenAI from 'openai';
import { APIConnectionError, APIError } from 'openai';
import { NightshiftError } from '../../core/errors';
import type { Environment } from '../../platform/config';
import { deepestReason } from '../batches/failures';
import { printable } from '../batches/human-format';
import { openOpenAi } from '../batches/openai-client';
import type { GatewayAccess } from './gateway-flags';

/** A recording of an hour takes long; the gateway has limits of its own. */
const TIMEOUT_MS = 3_600_000;
const NOT_FOUND = 404;
const TRANSIENT = [408, 425, 429];

/** The official SDK for a gateway. */
export function openGateway(
  { url, apiKey, isNamedByUser }: GatewayAccess,
  env: Environment,
): OpenAI {
  return openOpenAi({
    ...{ baseUrl: url, apiKey, headers: {}, env },
    usesEnvironment: isNamedByUser,
    timeoutMs: TIMEOUT_MS,
  });
}

/**
 * Makes a request, and explains its failure in a sentence that says what to do.
 *
 * @throws unavailable if another try may end better, else invalid_request
 */
export async function askGateway<T>(client: OpenAI, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await explained(error, client);
  }
}

async function explained(error: unknown, client: OpenAI): Promise<unknown> {
  const { baseURL } = client;
  if (error instanceof APIConnectionError) {
    const message = `No gateway answers at ${baseURL} (${deepestReason(error)}). Start one, or name it with --gateway-url.`;
    return new NightshiftError('unavailable', message, { cause: error });
  }
  if (!(error instanceof APIError) || typeof error.status !== 'number') return error;
  const status: number = error.status;
  const isTransient = status >= 500 || TRANSIENT.includes(status);
  const said = printable(error.message.replace(/^\d+ /, ''));
  const models = status === NOT_FOUND ? await knownModels(client) : '';
  const message = `The gateway answered ${status}: ${said}${models}`;
  const code = isTransient ? 'unavailable' : 'invalid_request';
  return new NightshiftError(code, message, { cause: error });
}

/** A hint for a wrong model. */
async function knownModels(client: OpenAI): Promise<string> {
  try {
    const { data } = await client.models.list({ maxRetries: 0, timeout: 5_000 });
    const names = data.map(({ id }) => printable(id));
    return names.length === 0 ? '' : ` Its models: ${names.slice(0, 20).join(', ')}.`;
  } catch {
    return '';
  }
}
