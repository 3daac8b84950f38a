/** HTTP as bytes, for what no HTTP client sends. */
import net from 'node:net';

/** An answer as it was on the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Sends bytes as they are. Resolves with all that came back when the server has closed the connection. */
export function exchange(
  port: number,
  bytes: string | Buffer,
  { end = false } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
    socket.on('error', reject);
    socket.on('end', () => socket.end());
    socket.on('close', () => resolve(answer));
    socket.write(bytes);
    if (end) socket.end();
  });
}

/** The answers in what came back, one after the other. */
export function answersIn(text: string): WireAnswer[] {
  const found: WireAnswer[] = [];
  for (let rest = text; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n');
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n');
    const fields = lines.map((line) => /^([^:]+): ?(.*)$/.exec(line)!.slice(1) as [string, string]);
    const headers = Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]));
    const length = Number(headers['content-length'] ?? 0);
    const body = rest.slice(end + 4, end + 4 + length);
    found.push({ status: Number(first.split(' ')[1]), headers, body });
    rest = rest.slice(end + 4 + length);
  }
  return found;
}

/** Expects an answer with the error envelope and the headers that every answer has. */
export function expectEnvelope(answer: WireAnswer | undefined, status: number): void {
  expect(answer?.status).toBe(status);
  expect(answer?.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': expect.stringMatching(/^req_[0-9a-f]{32}$/),
    'openai-version': '2020-10-01',
    'openai-organization': 'default',
    'openai-processing-ms': expect.stringMatching(/^\d+$/),
    'x-content-type-options': 'nosniff',
  });
  expect(JSON.parse(answer?.body ?? '')).toEqual({
    error: {
      message: expect.any(String),
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
  });
}
