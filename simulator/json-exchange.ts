import type { IncomingMessage, ServerResponse } from 'node:http';

/** Sends `body` as JSON. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

/** An error in the form of OpenAI's API; its type depends on the status. */
export function errorBody(error: {
  readonly httpStatus: number;
  readonly message: string;
  readonly param: string | null;
  readonly apiCode: string | null;
}): unknown {
  const { message, param, apiCode, httpStatus } = error;
  return { error: { message, type: errorType(httpStatus), param, code: apiCode } };
}

function errorType(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

/** Reads a body of at most `maxBytes`; `onBody` gets `null` if it is larger. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  onBody: (body: Buffer | null) => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  request.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
  });
  request.on('end', () => {
    const [first] = chunks;
    if (length > maxBytes) onBody(null);
    else onBody(chunks.length === 1 && first ? first : Buffer.concat(chunks));
  });
}
