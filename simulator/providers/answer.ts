import type { NightshiftError } from '../../core/errors';
import { errorBody } from '../json-exchange';

/** The answer to one call. */
export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly retryAfterSec?: number | null;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What an error of a provider says. */
export type ApiFault = Pick<NightshiftError, 'httpStatus' | 'message' | 'param' | 'apiCode'>;

/** A JSON answer. */
export function jsonAnswer(json: unknown, status = 200): ProviderAnswer {
  return { status, contentType: 'application/json', bytes: Buffer.from(JSON.stringify(json)) };
}

/** An error as an answer of OpenAI. */
export function errorAnswer(error: ApiFault): ProviderAnswer {
  return jsonAnswer(errorBody(error), error.httpStatus);
}
