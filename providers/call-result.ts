import {
  createOutcome,
  idempotentOutcome,
  type CallEnd,
  type CreateOutcome,
  type IdempotentOutcome,
} from '../core/delegation/call-outcome';
import type {
  CallFailure,
  CallResult,
  IdempotentResult,
  InputState,
  ProviderError,
} from './provider';
import type { ProviderEnd } from './provider-http';

/** How the answers of one kind of call are read. Its functions are pure. */
export interface AnswerReader<Value> {
  /** The value of a 2xx answer; null if it is not what was asked for. */
  value(json: unknown): Value | null;
  /** The error in any other answer; null if the provider did not write it. */
  error(json: unknown): (ProviderError & { readonly isQuotaRefusal: boolean }) | null;
  /** A text without secrets. */
  mask(text: string): string;
}

const MAX_MESSAGE = 2_000;
const MAX_CODE = 100;

/** Classifies a call that may be repeated. */
export function idempotentResult<Value>(
  end: ProviderEnd,
  reader: AnswerReader<Value>,
): IdempotentResult<Value> {
  return resultOf(end, reader, idempotentOutcome, 'ok');
}

/** Classifies a create. */
export function createResult<Value>(
  end: ProviderEnd,
  reader: AnswerReader<Value>,
): CallResult<Value, 'accepted', CreateOutcome> {
  return resultOf(end, reader, createOutcome, 'accepted');
}

function resultOf<
  Value,
  Success extends Outcome,
  Outcome extends CreateOutcome | IdempotentOutcome,
>(
  end: ProviderEnd,
  reader: AnswerReader<Value>,
  classify: (end: CallEnd) => Outcome,
  success: Success,
): CallResult<Value, Success, Outcome> {
  if (end.kind === 'failure') {
    const { message, code = null } = end;
    const failure = failureOf({ code, message }, reader.mask);
    return unsuccessful(classify(end), success, failure);
  }
  const { status, json, retryAfterMs } = end;
  const isSuccess = status >= 200 && status < 300;
  const value = isSuccess ? reader.value(json) : null;
  const error = isSuccess ? null : reader.error(json);
  const outcome = classify({
    kind: 'answer',
    status,
    isFromProvider: isSuccess ? value !== null : error !== null,
    isQuotaRefusal: error?.isQuotaRefusal === true,
  });
  if (outcome === success && value !== null) return { outcome: success, value };
  const text = isSuccess ? 'an answer that cannot be read' : 'no error object';
  const said = error ?? { code: null, message: `HTTP ${status} with ${text}` };
  return unsuccessful(outcome, success, {
    ...failureOf(said, reader.mask),
    status,
    retryAfterMs,
  });
}

function unsuccessful<Value, Success extends Outcome, Outcome extends string>(
  outcome: Outcome,
  success: Success,
  failure: CallFailure,
): CallResult<Value, Success, Outcome> {
  if (outcome === success)
    throw new RangeError(`a call without a value has the outcome ${outcome}`);
  return { outcome: outcome as Exclude<Outcome, Success>, failure };
}

function failureOf(error: ProviderError, mask: (text: string) => string): CallFailure {
  return { ...boundedError(error, mask), status: null, retryAfterMs: null };
}

/** The same result with another value. */
export function mapResult<From, To>(
  result: IdempotentResult<From>,
  map: (value: From) => To,
): IdempotentResult<To> {
  return result.outcome === 'ok' ? { outcome: 'ok', value: map(result.value) } : result;
}

/** The end of a clean-up. What is gone counts as deleted, and so does what never was: null. */
export function deleted(result: IdempotentResult<unknown> | null): IdempotentResult<void> {
  if (result === null || result.outcome === 'ok' || result.outcome === 'gone') {
    return { outcome: 'ok', value: undefined };
  }
  return result;
}

/** The state of an uploaded input. A file that is gone or refused is left to the create, whose refusal is final. */
export function inputStateOf(look: IdempotentResult<InputState>): IdempotentResult<InputState> {
  const isFinal = look.outcome === 'gone' || look.outcome === 'refused';
  return isFinal ? { outcome: 'ok', value: 'ready' } : look;
}

/** An error of a provider, masked and cut to what {@link ProviderError} allows. */
export function boundedError(
  { code, message }: ProviderError,
  mask: (text: string) => string,
): ProviderError {
  // Masked before it is cut, so that no part of a key is left at the end.
  return {
    code: code === null ? null : mask(code).slice(0, MAX_CODE),
    message: mask(message).slice(0, MAX_MESSAGE),
  };
}
