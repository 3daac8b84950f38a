import { NightshiftError } from '../../core/errors';

/** The JSON of a body. @throws invalid_request with `message` */
export function readJson(body: Buffer, message: string): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (cause) {
    throw new NightshiftError('invalid_request', message, { cause });
  }
}
