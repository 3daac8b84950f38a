import { isJsonObject } from '../../core/openai/json-object';
import { translating, TranslationScope } from '../chat/scope';
import { generateContentRequest } from '../google-models/request';
import type { EncodedLine, LineToEncode } from '../provider';

/** The label of a request that names its line: results repeat requests, and have no key of their own. */
export const LINE_LABEL = 'nightshift_line';

/** A line of a job's input: the translated request with the wire id as its label. Pure. */
export function encodeInputLine({ wireId, body, translation }: LineToEncode): EncodedLine {
  const { dropParams, extraBody } = translation;
  const json: unknown = JSON.parse(body.toString('utf8'));
  return translating(() => {
    const given = isJsonObject(json) ? json : {};
    const translated = generateContentRequest(given, new TranslationScope(dropParams), extraBody);
    const own = translated['labels'];
    const labels = { ...(isJsonObject(own) ? own : {}), [LINE_LABEL]: wireId };
    const line = { request: { ...translated, labels } };
    return { kind: 'line' as const, bytes: Buffer.from(JSON.stringify(line)) };
  });
}
