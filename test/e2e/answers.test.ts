import type { ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { LocalServer } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import type { EndedBatch } from './run-batch';
import { runRequests } from './run-batch';
import type { ResultLine, TestStack } from '../support/stack';
import { STACK_START_MS, startStack } from '../support/stack';

const TIMEOUT_MS = 1_500;
const MAX_RETRIES = 2;
const TRIES = MAX_RETRIES + 1;
const MIB = 1024 * 1024;

/** Answers one attempt of one line; attempts count from 1. */
type Reply = (response: ServerResponse, attempt: number) => void;

let server: LocalServer;
let stack: TestStack;
let replies: Readonly<Record<string, Reply>> = {};
/** Times of the attempts of each line, by its name. */
const triedAtMs = new Map<string, number[]>();

beforeAll(async () => {
  server = await startLocalServer(({ body }, response) => {
    const { user } = JSON.parse(body.toString()) as { user: string };
    const times = triedAtMs.get(user) ?? [];
    triedAtMs.set(user, [...times, performance.now()]);
    replies[user]?.(response, times.length + 1);
  });
  stack = await startStack({
    config: {
      model_gateways: { m: gateway('50s'), hasty: gateway(`${TIMEOUT_MS}ms`) },
      concurrency: { per_model: 50 },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await server?.close();
}, 60_000);
beforeEach(() => triedAtMs.clear());

function gateway(requestTimeout: string): object {
  return {
    url: server.url,
    request_timeout: requestTimeout,
    max_retries: MAX_RETRIES,
    initial_backoff: '20ms',
    max_backoff: '100ms',
  };
}

/** Gives every request up until twice the time has passed that one may take. */
function givenUp(status: number, headers: Record<string, string>): Reply {
  const endMs = performance.now() + 2 * TIMEOUT_MS;
  return (response, attempt) =>
    (performance.now() < endMs ? send('{}', status, headers) : fine)(response, attempt);
}

/** One line for each reply, named after it. */
async function ask(some: Readonly<Record<string, Reply>>, model = 'm'): Promise<EndedBatch> {
  replies = some;
  const requests = Object.keys(some).map((customId) => ({
    customId,
    body: { model, messages: [], user: customId },
  }));
  const ended = await runRequests(stack.client, requests, { endpoint: '/v1/chat/completions' });
  expect(ended.batch.status).toBe('completed');
  return ended;
}

const tries = (customId: string): number => triedAtMs.get(customId)?.length ?? 0;
const named = (lines: readonly ResultLine[], customId: string): ResultLine | undefined =>
  lines.find((line) => line.custom_id === customId);
const bodyOf = (lines: readonly ResultLine[], customId: string) =>
  named(lines, customId)?.response?.body;

const send =
  (body: string | Buffer, status = 200, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
const fine = send('{"model":"m"}');

/** A line of a result file as it is stored, which parsing would hide. */
async function rawLine(fileId: string | null | undefined, customId: string): Promise<string> {
  const text = await (await stack.client.files.content(fileId ?? '')).text();
  return text.split('\n').find((line) => line.includes(`"custom_id":"${customId}"`)) ?? '';
}

describe('answers of model servers that are a JSON object', () => {
  it('are embedded token by token on one line of ASCII', async () => {
    const numbers = '{"big":9007199254740993,"one":1.0,"huge":1E400,"zero":-0,"twice":1,"twice":2}';
    const { batch, output } = await ask({
      numbers: send(numbers),
      pretty: send('\r\n{\n\t"text" : "a  b\\n c" ,\n  "list": [ 1, 2 ]\n}\n'),
      foreign: send('{"text":"é 漢 😀 \u2028\u2029\u0085","escaped":"\\u00e9\\/"}'),
      proto: send('{"__proto__":{"a":1},"constructor":null}'),
      deep: send(`{"deep":${'['.repeat(5_000)}${']'.repeat(5_000)}}`),
    });
    expect(batch.request_counts).toEqual({ total: 5, completed: 5, failed: 0 });
    const tail = (body: string) => `"body":${body}},"error":null}`;
    const raw = (name: string) => rawLine(batch.output_file_id, name);
    expect(await raw('numbers')).toContain(tail(numbers));
    expect(await raw('pretty')).toContain(tail('{"text":"a  b\\n c","list":[1,2]}'));
    expect(await raw('foreign')).toContain(
      tail(
        '{"text":"\\u00e9 \\u6f22 \\ud83d\\ude00 \\u2028\\u2029\\u0085","escaped":"\\u00e9\\/"}',
      ),
    );
    expect(await raw('proto')).toContain(tail('{"__proto__":{"a":1},"constructor":null}'));
    expect(output.map((line) => Object.keys(line))).toEqual(
      Array(5).fill(['id', 'custom_id', 'response', 'error']),
    );
  });

  it('are read in any content coding, in pieces, with any content type, and after early hints', async () => {
    const text = '{"text":"é漢😀","model":"m"}';
    const { batch, output } = await ask({
      gzip: send(gzipSync(text), 200, { 'content-encoding': 'gzip' }),
      deflate: send(deflateSync(text), 200, { 'content-encoding': 'deflate' }),
      br: send(brotliCompressSync(text), 200, { 'content-encoding': 'br' }),
      plain: send(text, 200, { 'content-type': 'text/plain' }),
      typeless: (response) => response.writeHead(201).end(text),
      pieces: (response) => {
        for (const byte of Buffer.from(text)) response.write(Buffer.of(byte));
        response.end();
      },
      hints: (response) => {
        response.writeEarlyHints({ link: '</style.css>; rel=preload' });
        response.end(text);
      },
    });
    expect(batch.request_counts).toEqual({ total: 7, completed: 7, failed: 0 });
    for (const { response } of output) expect(response?.body['text']).toBe('é漢😀');
    expect(named(output, 'typeless')?.response?.status_code).toBe(201);
  });

  it('count no tokens if their usage is invalid', async () => {
    const { batch } = await ask({
      words: send('{"usage":{"prompt_tokens":"7","completion_tokens":null}}'),
      negative: send('{"usage":{"prompt_tokens":-7,"total_tokens":-1}}'),
      list: send('{"usage":[1,2]}'),
      good: send('{"usage":{"prompt_tokens":7,"completion_tokens":2}}'),
    });
    expect(batch.request_counts?.completed).toBe(4);
    expect(batch.usage).toMatchObject({ input_tokens: 7, output_tokens: 2, total_tokens: 9 });
  });
});

describe('answers of model servers that are not a JSON object', () => {
  it('fail their line and are wrapped under their status, also with 200, without a retry', async () => {
    const odd: Record<string, string | Buffer> = {
      text: 'hello <b>you</b>',
      empty: '',
      broken: '{"a":1',
      array: '[{"a":1}]',
      scalar: '17',
      nothing: 'null',
      nan: '{"a":NaN}',
      comma: '{"a":1,}',
      twice: '{"a":1}{"b":2}',
      bom: '\ufeff{"a":1}',
      bytes: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      control: '{"a":"line\nbreak"}',
    };
    const { batch, errors } = await ask(
      Object.fromEntries(Object.entries(odd).map(([name, body]) => [name, send(body)])),
    );
    const count = Object.keys(odd).length;
    expect(batch).toMatchObject({
      output_file_id: null,
      request_counts: { total: count, completed: 0, failed: count },
    });
    for (const { custom_id: name, error, response } of errors) {
      expect([name, error, tries(name)]).toEqual([name, null, 1]);
      expect(response).toMatchObject({
        status_code: 200,
        body: { error: { type: 'server_error', param: null, code: 'invalid_response' } },
      });
    }
    expect(bodyOf(errors, 'text')).toMatchObject({ error: { message: 'hello <b>you</b>' } });
    expect(bodyOf(errors, 'empty')).toMatchObject({ error: { message: '' } });
  });

  it('keep their first 2,000 characters', async () => {
    const { errors } = await ask({ long: send('😀'.repeat(3_000), 400) });
    expect(named(errors, 'long')?.response?.status_code).toBe(400);
    expect(bodyOf(errors, 'long')).toMatchObject({ error: { message: '😀'.repeat(2_000) } });
  });
});

describe('answers of model servers with an error status', () => {
  it('are kept as they are if a retry would not help', async () => {
    const elsewhere = { location: `${server.url}/elsewhere` };
    const error = (status: number) => `{"error":{"message":"no ${status}"}}`;
    const { batch, errors } = await ask({
      '302': send(error(302), 302, elsewhere),
      '307': send(error(307), 307, elsewhere),
      '204': (response) => response.writeHead(204).end(),
      '400': send(error(400), 400),
      '404': send(error(404), 404),
      '422': send(error(422), 422),
    });
    expect(batch.request_counts).toEqual({ total: 6, completed: 0, failed: 6 });
    for (const { custom_id: name, response } of errors) {
      expect([tries(name), String(response?.status_code)]).toEqual([1, name]);
      if (name !== '204') expect(response?.body).toEqual(JSON.parse(error(Number(name))));
    }
    expect(server.received.filter(({ url }) => url.includes('elsewhere'))).toEqual([]);
  });

  it('are retried up to the limit; then the last answer is kept', async () => {
    const lastWord = (status: number): Reply => {
      return (response, attempt) => send(`{"attempt":${attempt}}`, status)(response, attempt);
    };
    const codes = [408, 425, 500, 502, 504, 529];
    const replies = Object.fromEntries(codes.map((code) => [`x-${code}`, lastWord(code)]));
    const { batch, output, errors } = await ask({
      ...replies,
      mended: (response, attempt) => (attempt < TRIES ? lastWord(500) : fine)(response, attempt),
    });
    expect(batch.request_counts).toEqual({ total: 7, completed: 1, failed: 6 });
    expect(output.map((line) => line.custom_id)).toEqual(['mended']);
    for (const code of codes) {
      expect(tries(`x-${code}`)).toBe(TRIES);
      expect(named(errors, `x-${code}`)).toMatchObject({
        response: { status_code: code, body: { attempt: TRIES } },
        error: null,
      });
    }
  });

  it('that refuse a request among others do not count as attempts, at most twenty times', async () => {
    const { batch, errors } = await ask({ busy: send('{}', 429), other: fine });
    expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 });
    expect(named(errors, 'busy')).toMatchObject({ response: { status_code: 429 }, error: null });
    expect(tries('busy')).toBeGreaterThan(TRIES);
    expect(tries('busy')).toBeLessThanOrEqual(TRIES + 20);
  });

  it('pause the model for their Retry-After', async () => {
    const busy = (value: string): Reply => {
      return (response, attempt) =>
        (attempt === 1 ? send('{}', 429, { 'retry-after': value }) : fine)(response, attempt);
    };
    // One after the other, because a pause concerns the whole model.
    for (const replies of [{ garbage: busy('soon') }, { seconds: busy('2') }]) {
      const { batch } = await ask(replies);
      expect(batch.request_counts?.completed).toBe(1);
    }
    const pauseMs = (name: string): number => {
      const [first = 0, second = 0] = triedAtMs.get(name) ?? [];
      return second - first;
    };
    expect(pauseMs('seconds')).toBeGreaterThanOrEqual(1_990);
    // Without a valid header the backoff is a tenth of a second at most.
    expect(pauseMs('garbage')).toBeLessThan(pauseMs('seconds'));
  });
});

describe('a request without an answer', () => {
  it('ends as request_timeout if the server is silent, before or after it began to answer', async () => {
    const silence: Record<string, Reply> = {
      silent: () => undefined,
      halfway: (response) => response.writeHead(200).write('{"a":'),
      late: (response, attempt) => (attempt < TRIES ? undefined : fine(response, attempt)),
      // Given up unserved for longer than a try may take: that costs no try.
      dropped: givenUp(503, { 'x-nightshift-dropped': 'queue_ttl_expired' }),
      expired: givenUp(429, { 'x-llm-d-request-dropped-reason': 'rejected-ttl-expired' }),
    };
    const { batch, errors } = await ask(silence, 'hasty');
    expect(batch.request_counts).toEqual({ total: 5, completed: 3, failed: 2 });
    expect([tries('dropped') > TRIES, tries('expired') > TRIES]).toEqual([true, true]);
    for (const name of ['silent', 'halfway']) {
      expect(named(errors, name)).toMatchObject({
        response: null,
        error: { code: 'request_timeout' },
      });
      expect(tries(name)).toBe(TRIES);
    }
  });

  it('ends as connection_error if the connection breaks each time', async () => {
    const { batch, errors } = await ask({
      reset: (response) => response.socket?.destroy(),
      cut: (response) => {
        response.writeHead(200, { 'content-length': '100' }).write('{"a":1');
        setTimeout(() => response.socket?.destroy(), 20);
      },
      once: (response, attempt) =>
        attempt === 1 ? response.socket?.destroy() : fine(response, attempt),
    });
    expect(batch.request_counts).toEqual({ total: 3, completed: 1, failed: 2 });
    expect(errors.map((line) => line.custom_id)).toEqual(['reset', 'cut']);
    for (const line of errors) {
      expect(line).toMatchObject({ response: null, error: { code: 'connection_error' } });
      expect(tries(line.custom_id)).toBe(TRIES);
    }
  });

  it('ends as connection_error if the content coding of the answer is broken', async () => {
    const { errors } = await ask({
      coding: send('not gzip at all', 200, { 'content-encoding': 'gzip' }),
      fine,
    });
    expect(errors).toMatchObject([{ custom_id: 'coding', error: { code: 'connection_error' } }]);
    expect(tries('coding')).toBe(TRIES);
  });
});

describe('large answers of model servers', () => {
  it('are delivered up to the limit and fail as response_too_large beyond it, without a retry', async () => {
    const large = (bytes: number) => Buffer.from(`{"text":"${'x'.repeat(bytes)}"}`);
    const beyond = large(65 * MIB);
    const replies: Record<string, Reply> = {
      passes: send(large(20 * MIB)),
      declared: send(beyond),
      streamed: (response) => {
        response.write(beyond.subarray(0, 60 * MIB));
        response.end(beyond.subarray(60 * MIB));
      },
      inflated: send(gzipSync(beyond, { level: 1 }), 200, { 'content-encoding': 'gzip' }),
      small: fine,
    };
    const { batch, output, errors } = await ask(replies);
    expect(batch.request_counts).toEqual({ total: 5, completed: 2, failed: 3 });
    expect(output.map((line) => line.custom_id)).toEqual(['passes', 'small']);
    expect((bodyOf(output, 'passes')?.['text'] as string).length).toBe(20 * MIB);
    for (const line of errors) {
      expect(line).toMatchObject({ response: null, error: { code: 'response_too_large' } });
      expect(tries(line.custom_id)).toBe(1);
    }
  }, 60_000);
});
