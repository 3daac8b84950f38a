import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import type { CreateOutcome } from '../../core/delegation/call-outcome';
import type { CallOptions, CallResult, IdempotentResult, SendOptions } from '../provider';
import type { ProviderEnd } from '../provider-http';
import { readAwsError, type AwsError } from './aws-errors';
import type { AwsExchange } from './transport';

/** How one kind of call to AWS is made and read. */
export interface AwsCall<Output, Value> {
  /** Sends the command with these options, which it passes to `client.send`. */
  send(exchange: object): Promise<Output>;
  /** The value of an output; null if it is not what was asked for. */
  value(output: Output): Value | null;
  /** A text without secrets. */
  mask(text: string): string;
  /** Another reading of an error, if a service's codes say less than its other words. */
  reread?(error: AwsError): AwsError;
}

/** Makes a call that may be repeated. */
export async function callAws<Output, Value>(
  call: AwsCall<Output, Value>,
  exchange: Omit<AwsExchange, 'signal'>,
  { signal }: CallOptions,
): Promise<IdempotentResult<Value>> {
  return idempotentResult(await endOf(call, { ...exchange, signal }), readerOf(call));
}

/** Makes a create, on a connection of its own. */
export async function createAtAws<Output, Value>(
  call: AwsCall<Output, Value>,
  { signal, timeoutMs, mayLeave }: SendOptions,
): Promise<CallResult<Value, 'accepted', CreateOutcome>> {
  const exchange = { signal, timeoutMs, mayLeave, usesNewConnection: true };
  return createResult(await endOf(call, exchange), readerOf(call));
}

/** Holds what the SDK has read, in the place of the body of an answer. */
interface Read<Output> {
  readonly output?: Output;
  readonly error?: AwsError | null;
}

async function endOf<Output, Value>(
  call: AwsCall<Output, Value>,
  exchange: AwsExchange,
): Promise<ProviderEnd> {
  try {
    const output = await call.send(exchange);
    return answerOf(exchange, 200, { output });
  } catch (error) {
    const failure = exchange.failure?.() ?? null;
    if (failure !== null) return failure;
    const { answered } = exchange;
    // Nothing was sent: there are no credentials, which is for the operator.
    if (answered === undefined) return answerOf(exchange, 401, { error: unsent(error) });
    const { status } = answered;
    // The SDK could not read an answer of success.
    if (status < 300) return answerOf(exchange, status, {});
    const read = readAwsError(error, status);
    const said = read === null ? null : (call.reread?.(read) ?? read);
    return answerOf(exchange, said?.status ?? status, { error: said });
  }
}

function answerOf<Output>(
  { answered }: AwsExchange,
  status: number,
  json: Read<Output>,
): ProviderEnd {
  const pauseMs = answered?.retryAfterMs ?? null;
  return { kind: 'answer', status, json, retryAfterMs: pauseMs };
}

function unsent(error: unknown): AwsError {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { code: name, message, status: 401, isQuotaRefusal: false };
}

function readerOf<Output, Value>({ value, mask }: AwsCall<Output, Value>): AnswerReader<Value> {
  return {
    value: (json) => {
      const { output } = json as Read<Output>;
      return output === undefined ? null : value(output);
    },
    error: (json) => (json as Read<Output>).error ?? null,
    mask,
  };
}
