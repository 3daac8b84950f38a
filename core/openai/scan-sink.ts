import type { PrefixChain } from '../plan/prefix-chain';
import type { InputError } from './input-errors';
import type { JsonLimits } from './json-check';
import type { LineRules } from './line-check';

/** Receives what a scanner finds, in line order; the faults of the whole file come last. */
export interface ScanSink {
  /** A request without a fault. The object is valid until this returns. */
  request(request: ScannedRequest): void;
  fault(error: InputError): void;
}

/** The fields of a request that its plan stores, and the model of that plan. */
export interface ScannedRequest {
  readonly offset: number;
  /** Bytes without the line end. */
  readonly length: number;
  readonly prefixHash: number;
  /** The effective model: the default for a moderation without one. */
  readonly model: string;
  /** The uploaded file that the request names; null if it names none. */
  readonly fileId: string | null;
  /** Of its prompt; valid as long as the request. */
  readonly chain: PrefixChain;
}

/** What is known when the file has ended. */
export interface ScanTotals {
  /** Lines that are not blank, good or bad. */
  readonly requests: number;
}

/** The rules of single lines and the limits of the whole file. */
export interface ScanRules extends LineRules {
  readonly maxLineBytes: number;
  readonly maxRequests: number;
  /** Embedding inputs over the whole file. */
  readonly maxInputs: number;
  /** Whether a second model is a fault (`mismatched_model`). */
  readonly singleModel: boolean;
  /** Limits on the cost of parsing a line; a line that exceeds them is an `invalid_json_line`. */
  readonly json: JsonLimits;
}
