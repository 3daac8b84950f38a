import { fnv32a } from '../names/fnv';
import { QUOTE, stringEnd } from './json-bytes';
import { memberStarts } from './json-keys';

/** A longer text is not a model name. */
const MAX_MODEL_UNITS = 256;
/** Two quotes, and at most six bytes (an escape) for each code unit. */
const MAX_MODEL_BYTES = 6 * MAX_MODEL_UNITS + 2;
const RESPONSE = Buffer.from('response');
const BODY = Buffer.from('body');
const MODEL = Buffer.from('model');

/** The latest model and its tag: answers mostly name the model of the answer before. */
let knownModel: string | null = null;
let knownTag = 0;

/**
 * A 16-bit hash of an answer's model name; 0 if it names none. Finalization compares these tags to check
 * whether all answers name the same model, without parsing them again. Two different models have the same
 * tag with a probability of 1 in 65,535.
 */
export function modelTag(model: string | null): number {
  if (model !== knownModel) {
    knownTag = tagOf(model);
    knownModel = model;
  }
  return knownTag;
}

function tagOf(model: string | null): number {
  if (model === null || model === '' || model.length > MAX_MODEL_UNITS) return 0;
  const hash = fnv32a(Buffer.from(model, 'utf16le'));
  return (hash % 0xffff) + 1;
}

/** The `model` of the answer in an output line, or null. */
export function answerModel(line: Buffer): string | null {
  const body = answerBody(line);
  const [model = null] = body === null ? [] : memberStarts(line, body, [MODEL]);
  return modelAt(line, model);
}

/** Where the model server's answer begins in an output line. */
export function answerBody(line: Buffer): number | null {
  const [response = null] = memberStarts(line, 0, [RESPONSE]);
  const [body = null] = response === null ? [] : memberStarts(line, response, [BODY]);
  return body;
}

/** The model name that begins at `start` in ASCII JSON; null if it is not a string or too long. */
export function modelAt(json: Buffer, start: number | null): string | null {
  if (start === null || json[start] !== QUOTE) return null;
  const end = stringEnd(json, start) + 1;
  if (end - start > MAX_MODEL_BYTES) return null;
  return JSON.parse(json.toString('latin1', start, end)) as string;
}
