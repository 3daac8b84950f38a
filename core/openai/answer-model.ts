import { fnv32a } from '../plan/fnv';
import { COMMA, OPEN_BRACE, QUOTE, skipBlanks, stringEnd, valueEnd } from './json-bytes';

/** A longer name is no name of a model. */
const MAX_MODEL_UNITS = 256;

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
  const response = memberStart(line, 0, 'response');
  const body = response === null ? null : memberStart(line, response, 'body');
  const model = body === null ? null : memberStart(line, body, 'model');
  if (model === null || line[model] !== QUOTE) return null;
  return JSON.parse(line.toString('latin1', model, stringEnd(line, model) + 1)) as string;
}

/** Where the value of a member of the object at `open` begins; of repeated members the last counts. */
function memberStart(json: Buffer, open: number, name: string): number | null {
  if (json[open] !== OPEN_BRACE) return null;
  let found: number | null = null;
  let at = skipBlanks(json, open + 1);
  while (json[at] === QUOTE) {
    const keyEnd = stringEnd(json, at);
    const valueStart = skipBlanks(json, skipBlanks(json, keyEnd + 1) + 1);
    if (JSON.parse(json.toString('latin1', at, keyEnd + 1)) === name) found = valueStart;
    at = skipBlanks(json, valueEnd(json, valueStart));
    if (json[at] !== COMMA) break;
    at = skipBlanks(json, at + 1);
  }
  return found;
}
