import { createReadStream, statSync, type Stats } from 'node:fs';
import { createInterface } from 'node:readline';
import { NightshiftError } from '../../core/errors';
import { createJsonGuard } from '../../core/openai/json-check';
import { shortened } from './human-format';

/** A file of requests on this disk. */
export interface InputFile {
  readonly path: string;
  readonly bytes: number;
}

/** Checks that the file exists and is not empty. @throws invalid_request */
export function openInput(path: string): InputFile {
  const stats = statsOf(path);
  if (!stats.isFile()) throw refusal(`${path} is not a file`);
  if (stats.size === 0) throw refusal(`${path} is empty: a batch needs at least one request`);
  return { path, bytes: stats.size };
}

function statsOf(path: string): Stats {
  try {
    return statSync(path);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? `there is no file ${path}` : `cannot read ${path}: ${message}`;
    throw new NightshiftError('invalid_request', reason, { cause });
  }
}

/**
 * The endpoint of the first request; all lines of a batch have the same one. Blank lines and a byte order
 * mark are skipped, as the server does (docs/design/api-contract.md#line-format).
 *
 * @throws invalid_request if that line is not a request
 */
export async function endpointOf(path: string): Promise<string> {
  const input = createReadStream(path);
  const lines = createInterface({ input, crlfDelay: Infinity });
  let number = 0;
  try {
    for await (const line of lines) {
      number += 1;
      const text = number === 1 ? line.replace(/^\ufeff/, '') : line;
      if (text.trim() !== '') return endpointIn(text, `${path} line ${number}`);
    }
  } finally {
    lines.close();
    input.destroy();
  }
  throw refusal(`${path} contains no requests: all its lines are blank`);
}

const EXPECTED =
  'expected one JSON request per line, such as {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {…}}';

function endpointIn(line: string, where: string): string {
  const request = parseLine(line, where);
  const url = (request as { url?: unknown } | null)?.url;
  if (typeof url === 'string' && url !== '') return url;
  throw refusal(`${where} has no "url" to take the endpoint from: ${EXPECTED}`);
}

/** The server's default limits: it would refuse a line beyond them. */
const faultOf = createJsonGuard({ maxDepth: 10_000, maxTokens: 10_000_000 });

function parseLine(line: string, where: string): unknown {
  const fault = faultOf(Buffer.from(line));
  if (fault !== null && fault !== 'invalid') {
    throw refusal(`${where} is nested too deeply or has too many members: ${EXPECTED}`);
  }
  try {
    return JSON.parse(line);
  } catch (cause) {
    const message = `${where} is not JSON (it begins with ${shortened(line, 40)}): ${EXPECTED}`;
    throw new NightshiftError('invalid_request', message, { cause });
  }
}

function refusal(message: string): NightshiftError {
  return new NightshiftError('invalid_request', message);
}
