import { isJsonObject } from '../../core/openai/json-object';
import { boundedError } from '../call-result';
import { lineResultOf } from '../google-models/line-result';
import { readRpcStatus } from '../google-models/rpc-status';
import type { LineResult, ResultOptions } from '../provider';
import { LINE_LABEL } from './input-line';

/**
 * Reads a line of a result file (docs/design/providers.md#vertex-ai); null if it is not a result. Each line repeats
 * its request, whose label is the wire id. `status` is empty, or says why there is no response.
 */
export function readResultLine(
  line: Buffer,
  { model, createdSec }: Pick<ResultOptions, 'model' | 'createdSec'>,
  mask: (text: string) => string,
): LineResult | null {
  const json = parsed(line.toString('utf8'));
  if (!isJsonObject(json)) return null;
  const wireId = wireIdIn(json['request']);
  if (wireId === null) return null;
  const { status, response } = json;
  const context = { wireId, model, createdSec };
  if (typeof status !== 'string' || status === '') {
    return lineResultOf({ response, error: null }, context, mask);
  }
  const error = errorIn(status);
  if (readRpcStatus(error) !== null) return lineResultOf({ response: null, error }, context, mask);
  return { kind: 'failed', wireId, error: boundedError({ code: null, message: status }, mask) };
}

function wireIdIn(request: unknown): string | null {
  const labels: unknown = isJsonObject(request) ? request['labels'] : null;
  const id: unknown = isJsonObject(labels) ? labels[LINE_LABEL] : null;
  return typeof id === 'string' ? id : null;
}

/** The error object in a status such as `Bad Request: {"error": {…}}`. */
function errorIn(status: string): unknown {
  const json = parsed(status.slice(status.indexOf('{'), status.lastIndexOf('}') + 1));
  return isJsonObject(json) ? (json['error'] ?? json) : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
