import { CLOSE_BRACE, skipBlanks, valueEnd } from '../../core/openai/json-bytes';
import { memberStarts } from '../../core/openai/json-keys';
import type { LineToEncode } from '../provider';

const MODEL = Buffer.from('model');
const CLOSE = Buffer.from('}');

/**
 * One line of an input file. The body is sent byte for byte; only its model is replaced, if that is mapped.
 * @param namesUrl whether the line names its method and URL
 */
export function encodeInputLine(
  { wireId, endpoint, model, body }: Pick<LineToEncode, 'wireId' | 'endpoint' | 'model' | 'body'>,
  namesUrl: boolean,
): Buffer {
  const request = namesUrl ? `"method":"POST","url":${JSON.stringify(endpoint)},` : '';
  const head = `{"custom_id":"${wireId}",${request}"body":`;
  const parts = model === null ? [body] : withModel(body, model);
  return Buffer.concat([Buffer.from(head), ...parts, CLOSE]);
}

function withModel(body: Buffer, model: string): Buffer[] {
  const open = skipBlanks(body, 0);
  const [start = null] = memberStarts(body, open, [MODEL]);
  const value = Buffer.from(JSON.stringify(model));
  if (start !== null) {
    return [body.subarray(0, start), value, body.subarray(valueEnd(body, start))];
  }
  // A moderation may omit its model.
  const isEmpty = body[skipBlanks(body, open + 1)] === CLOSE_BRACE;
  const member = `"model":${value.toString()}${isEmpty ? '' : ','}`;
  return [body.subarray(0, open + 1), Buffer.from(member), body.subarray(open + 1)];
}
