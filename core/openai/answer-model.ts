import { fnv32a } from '../names/fnv';
import { QUOTE, stringEnd } from './json-bytes';
import { memberStarts } from './json-keys';

/** A longer name is no name of a model. */
const MAX_MODEL_UNITS = 256;
/** Quotes and escapes of six bytes. */
const MAX_MODEL_BYTES = 6 * MAX_MODEL_UNITS + 2;
const RESPONSE = Buffer.from('response');
const BODY = Buffer.from('body');
const MODEL = Buffer.from('model');

/**
 * 16 bits that differ where the models of two answers do (but for one pair in 65,535); 0 for an answer
 * that names none. So the end of a batch knows whether its answers agree without parsing them again.
 */
export function modelTag(model: string | null): number {
  if (model === null || model === '' || model.length > MAX_MODEL_UNITS) return 0;
  const hash = fnv32a(Buffer.from(model, 'utf16le'));
  return (hash % 0xffff) + 1;
}

/** The `model` of the answer in an output line, or null where it names none. */
export function answerModel(line: Buffer): string | null {
  const body = answerBody(line);
  const [model = null] = body === null ? [] : memberStarts(line, body, [MODEL]);
  return modelAt(line, model);
}

/** Where the answer itself begins in an output line. */
export function answerBody(line: Buffer): number | null {
  const [response = null] = memberStarts(line, 0, [RESPONSE]);
  const [body = null] = response === null ? [] : memberStarts(line, response, [BODY]);
  return body;
}

/** The name that begins at `start` in ASCII JSON; null if it is no string, or none of a usual length. */
export function modelAt(json: Buffer, start: number | null): string | null {
  if (start === null || json[start] !== QUOTE) return null;
  const end = stringEnd(json, start) + 1;
  if (end - start > MAX_MODEL_BYTES) return null;
  return JSON.parse(json.toString('latin1', start, end)) as string;
}
