import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { until } from '../../support/until';
import { closeOutside, ONE_AT_A_TIME, Outside, poolOf, ScriptedBackend } from './outside';
import type { HeldRequest, Script } from './scripted-backend';

let gateway: Outside;
let backend: ScriptedBackend;

beforeAll(async () => {
  backend = await ScriptedBackend.start();
  const other = await ScriptedBackend.start();
  const pools = {
    ...poolOf('m', [backend], { models: ['m', 'm\u00e9'] }),
    ...poolOf('one', [other], ONE_AT_A_TIME),
  };
  one = other;
  gateway = await Outside.start({ gateway: { pools } });
}, 60_000);
let one: ScriptedBackend;
afterAll(closeOutside);

/** Lets the backend answer the next requests so, and collects them. */
function scripted(script: Script): HeldRequest[] {
  const seen: HeldRequest[] = [];
  backend.script = (held) => {
    seen.push(held);
    script(held);
  };
  return seen;
}

const head = (fields: string) =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n${fields}\r\n\r\n`;
const JSON_TYPE = 'content-type: application/json';

describe('the body of a request', () => {
  it.each([
    ['blanks and line ends', '\r\n { "model" :\t"m" ,\n"n" : 1e0 } \n'],
    ['repeated members, of which the last counts', '{"model":"nobody","model":"m","a":1,"a":2}'],
    ['escapes in the name of the model', '{"\\u006dodel":"\\u006d","x":"\\ud83d\\ude00\\/"}'],
    [
      'numbers that no double holds',
      '{"model":"m","seed":123456789012345678901234567890,"t":0.10000}',
    ],
    ['text beyond ASCII', '{"model":"m\u00e9","messages":[{"content":"\u{1f600} \u4f60"}]}'],
  ])('passes unchanged: %s', async (_what, body) => {
    const seen = scripted(({ response }) => response.end('{}'));
    const bytes = Buffer.from(body);
    const wire = gateway.wire(
      Buffer.concat([Buffer.from(head(`${JSON_TYPE}\r\ncontent-length: ${bytes.length}`)), bytes]),
    );
    expect(await wire.status()).toBe(200);
    expect(seen[0]!.body).toEqual(bytes);
  });

  it('passes unchanged in chunks, cut in the middle of a character', async () => {
    const seen = scripted(({ response }) => response.end('{}'));
    const bytes = Buffer.from('{"model":"m","x":"\u{1f600}"}');
    const wire = gateway.wire(head(`${JSON_TYPE}\r\ntransfer-encoding: chunked`));
    for (const part of [bytes.subarray(0, 19), bytes.subarray(19, 20), bytes.subarray(20)]) {
      wire.socket.write(`${part.length.toString(16)};ext=1\r\n`);
      wire.socket.write(part);
      wire.socket.write('\r\n');
    }
    wire.socket.write('0\r\nx-trailer: 1\r\n\r\n');
    expect(await wire.status()).toBe(200);
    expect(seen[0]!.body).toEqual(bytes);
  });

  it('is refused with 415 if it is compressed', async () => {
    const bytes = gzipSync('{"model":"m"}');
    const fields = `${JSON_TYPE}\r\ncontent-encoding: gzip\r\ncontent-length: ${bytes.length}`;
    const wire = gateway.wire(Buffer.concat([Buffer.from(head(fields)), bytes]));
    expect(await wire.status()).toBe(415);
  });
});

describe('fields', () => {
  it('of a request keep their order, case and repetitions, without those of the connection', async () => {
    const seen = scripted(({ response }) => response.end('{}'));
    const body = '{"model":"m"}';
    const fields = [
      ...['X-B: 1', 'x-a: 2', 'X-B: 3', 'X-Empty:', `Content-Type: application/json`],
      ...['Connection: x-gone, keep-alive', 'X-Gone: 1', 'Keep-Alive: timeout=5', 'TE: trailers'],
      ...[
        'X-Nightshift-Priority: 2',
        'x-gateway-inference-fairness-id: other',
        'Authorization: Bearer mine',
      ],
      `Content-Length: ${body.length}`,
    ];
    const wire = gateway.wire(head(fields.join('\r\n')) + body);
    expect(await wire.status()).toBe(200);
    const raw = seen[0]!.request.rawHeaders;
    const pairs = raw.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${raw[i + 1]}`] : []));
    expect(pairs.filter((pair) => /^(x-[abe])/i.test(pair))).toEqual([
      'X-B: 1',
      'x-a: 2',
      'X-B: 3',
      'X-Empty: ',
    ]);
    expect(pairs).toContain('Authorization: Bearer mine');
    expect(pairs).toContain('accept-encoding: identity');
    const names = raw.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
    for (const gone of [
      'x-gone',
      'te',
      'keep-alive',
      'x-nightshift-priority',
      'x-gateway-inference-fairness-id',
    ]) {
      expect(names).not.toContain(gone);
    }
    expect(seen[0]!.request.headers.host).toBe(new URL(backend.url).host);
  });

  it('of an answer keep their order, case and repetitions, and its status, without a foreign drop', async () => {
    const fields = ['Set-Cookie', 'a=1', 'x-z', '1', 'X-A', '2', 'set-cookie', 'b=2', 'x-z', '3'];
    scripted(({ response }) => {
      response.writeHead(418, [
        ...fields,
        'x-nightshift-dropped',
        'evicted',
        'Content-Length',
        '5',
      ]);
      response.end('short');
    });
    const { status, rawHeaders, text, headers } = await gateway.ask('m', 'teapot').answer;
    expect([status, text]).toEqual([418, 'short']);
    const own = rawHeaders.filter((_, i) =>
      /^(set-cookie|x-z|x-a)$/i.test(rawHeaders[i - (i % 2)]!),
    );
    expect(own).toEqual(fields);
    expect(headers).toMatchObject({ 'content-length': '5', 'x-request-id': 'teapot' });
    expect(headers['server-timing']).toMatch(/^queue;dur=0(\.0+)?$/);
    expect(headers).not.toHaveProperty('x-nightshift-dropped');
  });
});

describe('the body of an answer', () => {
  const random = (bytes: number) =>
    createHash('shake256', { outputLength: bytes }).update('x').digest();

  it.each([
    ['of fixed length', true],
    ['in chunks', false],
  ])('passes unchanged %s, also if it is compressed', async (_what, isFixed) => {
    const bytes = gzipSync(random(100_000));
    scripted(({ response }) => {
      const fields = { 'content-encoding': 'gzip' };
      response.writeHead(200, isFixed ? { ...fields, 'content-length': bytes.length } : fields);
      response.end(bytes);
    });
    const { headers, bytes: received } = await gateway.ask('m', 'compressed').answer;
    expect(received).toEqual(bytes);
    expect(gunzipSync(received)).toEqual(random(100_000));
    expect(headers['transfer-encoding']).toBe(isFixed ? undefined : 'chunked');
  });

  it('passes each event of a stream before the next one is made', async () => {
    let made: HeldRequest | undefined;
    scripted((held) => {
      made = held;
      held.response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    });
    const asked = gateway.ask('m', 'stream', {}, { stream: true });
    // The head comes before the first event.
    expect((await asked.head).statusCode).toBe(200);
    const events = Array.from({ length: 50 }, (_, i) => `data: {"i":${i}}\n\n`);
    const delays: number[] = [];
    for (const event of events) {
      const sentAt = performance.now();
      made!.response.write(event);
      await until(() => asked.text().endsWith(event), 5_000, event, 0);
      delays.push(performance.now() - sentAt);
    }
    // Half of the events need a few milliseconds at most, also on a busy machine.
    expect(delays.sort((a, b) => a - b)[25]).toBeLessThan(20);
    made!.response.end();
    expect((await asked.answer).text).toBe(events.join(''));
  });

  it('waits for a client that does not read, and is whole in the end', async () => {
    const block = random(65_536);
    const blocks = 512;
    let written = 0;
    scripted(({ response }) => {
      const more = (): void => {
        while (written < blocks) {
          written++;
          if (!response.write(block)) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    });
    const body = '{"model":"m"}';
    const wire = gateway.wire(`${head(`${JSON_TYPE}\r\ncontent-length: ${body.length}`)}${body}`);
    wire.socket.pause();
    // Nothing is written any more when the count stands still for 20 looks in a row.
    let [last, looks] = [-1, 0];
    await until(
      () => {
        looks = written > 0 && written === last ? looks + 1 : 0;
        last = written;
        return looks > 20;
      },
      10_000,
      'the backend to wait',
      10,
    );
    expect(written).toBeLessThan(blocks / 2);
    wire.socket.resume();
    await wire.reads('the end', (text) => text.endsWith('0\r\n\r\n'));
    expect(written).toBe(blocks);
    const blocksRead = wire.bytes().length / block.length;
    expect(blocksRead).toBeGreaterThanOrEqual(blocks);
  });

  it('is cut if the backend breaks off, so that it never looks complete', async () => {
    scripted(({ response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n', () => response.destroy());
    });
    await expect(gateway.ask('m', 'cut').answer).rejects.toThrow(/aborted|reset|hang up/);
  });
});

describe('a client that hangs up', () => {
  it('leaves the queue, never reaches a backend, and frees its place there', async () => {
    const first = gateway.ask('one', 'first');
    await one.holds(1);
    const [held] = await gateway.queue(
      'one',
      ['held', 'next'].map((name) => () => gateway.ask('one', name)),
    );
    held!.hangUp();
    await gateway.has('one', 1, 1);
    first.hangUp();
    await until(() => one.came.length === 2, 5_000, 'the next request', 2);
    expect(one.aborted).toEqual(['first']);
    expect(one.came).toEqual(['first', 'next']);
    one.respond('next');
    await gateway.has('one', 0, 0);
  });

  it('ends a stream at the backend too', async () => {
    scripted(({ response }) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
    );
    const asked = gateway.ask('m', 'leaves', {}, { stream: true });
    await asked.head;
    asked.hangUp();
    await until(() => backend.aborted.includes('leaves'), 5_000, 'the end at the backend', 2);
    await gateway.has('m', 0, 0);
    await gateway.has('one', 0, 0);
  });
});

it('answers pipelined requests in their order', async () => {
  scripted((held) => {
    if (held.name === 'slow') setTimeout(() => held.response.end('"slow"'), 100);
    else held.response.end(`"${held.name}"`);
  });
  const body = '{"model":"m"}';
  const request = (name: string) =>
    `${head(`${JSON_TYPE}\r\nx-request-id: ${name}\r\ncontent-length: ${body.length}`)}${body}`;
  const wire = gateway.wire(request('slow') + request('fast'));
  const text = await wire.reads('both answers', (all) => all.includes('"fast"'));
  expect(text.indexOf('"slow"')).toBeGreaterThan(0);
  expect(text.indexOf('"slow"')).toBeLessThan(text.indexOf('"fast"'));
});
