import { isJsonObject } from '../../core/openai/json-object';

/** The form of an error code: anything else may be a sentence. */
const CODE = /^[a-z][a-z0-9_.]{0,99}$/;
const MESSAGE = 'The provider had no capacity or quota for this request.';

/** An answer of the provider to one line. */
export interface LineAnswer {
  readonly status: number;
  readonly requestId: string | null;
  readonly body: Buffer;
}

/**
 * A 429 with a message of ours, and the provider's type and code: its message names the organization whose quota is used
 * up, which users must not see (docs/design/delegation.md#answers-that-are-kept). Other answers stay as they are.
 */
export function withoutAccount(answer: LineAnswer): LineAnswer {
  if (answer.status !== 429) return answer;
  const { type, code } = errorOf(answer.body);
  const error = { message: MESSAGE, type: type ?? 'rate_limit_error', param: null, code };
  return { ...answer, body: Buffer.from(JSON.stringify({ error })) };
}

function errorOf(body: Buffer): { type: string | null; code: string | null } {
  const parsed = parse(body);
  const error = isJsonObject(parsed) ? parsed['error'] : null;
  if (!isJsonObject(error)) return { type: null, code: null };
  return { type: codeIn(error['type']), code: codeIn(error['code']) };
}

function codeIn(value: unknown): string | null {
  return typeof value === 'string' && CODE.test(value) ? value : null;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return null;
  }
}
