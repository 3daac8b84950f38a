import { NO_USAGE, type Usage } from '../batch/counts';
import { answerBody } from './answer-model';
import { valueEnd } from './json-bytes';
import { memberStarts } from './json-keys';
import { usageOf } from './usage';

/** A longer `usage` cannot be a few counts, so it is ignored instead of parsed. */
const MAX_USAGE_BYTES = 64 * 1024;
const USAGE = Buffer.from('usage');

/** The usage that begins at `start` in ASCII JSON; zeros if there is none. */
export function usageAt(json: Buffer, start: number | null): Usage {
  if (start === null) return NO_USAGE;
  const end = valueEnd(json, start);
  if (end - start > MAX_USAGE_BYTES) return NO_USAGE;
  return usageOf(JSON.parse(json.toString('latin1', start, end)));
}

/** The usage of the answer in an output line. */
export function answerUsage(line: Buffer): Usage {
  const body = answerBody(line);
  const [usage = null] = body === null ? [] : memberStarts(line, body, [USAGE]);
  return usageAt(line, usage);
}
