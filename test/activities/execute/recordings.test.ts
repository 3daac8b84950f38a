import { Readable } from 'node:stream';
import { NightshiftError } from '../../../core/errors';
import { FRAME_KIND } from '../../../core/journal/frame';
import type { ExecuteDeps } from '../../../activities/execute/deps';
import type { Answer, Received } from '../../inference/local-server';
import type { ChunkWorld, ChunkWorldOptions } from './chunk-world';
import { chunkWorld } from './chunk-world';
import { noise } from '../../support/noise';

/** Lines with recordings, which are sent as forms. */

const ENDPOINT = '/v1/audio/transcriptions';
const CALL = { filename: 'call 1.wav', bytes: noise(300_000, 1) };

let world: ChunkWorld;
afterEach(() => world.close());

const json: Answer = (_, response) =>
  void response.setHeader('content-type', 'application/json').end('{"text":"hello"}');

function open(
  bodies: readonly object[],
  answer: Answer,
  options: ChunkWorldOptions = {},
  settings: Record<string, unknown> = {},
): Promise<ChunkWorld> {
  const files = { 'file-call': CALL };
  return chunkWorld(bodies.length, answer, settings, { files, ...options, bodies });
}

const run = (endpoint = ENDPOINT) => world.run({ endpoint });

/** The form of a request, as another implementation reads it. */
async function formOf({ body, headers }: Received) {
  const type = headers['content-type'] ?? '';
  const form = await new Response(new Uint8Array(body), {
    headers: { 'content-type': type },
  }).formData();
  const file = form.get('file') as File;
  const fields = [...form].filter(([name]) => name !== 'file');
  return { fields, file, bytes: Buffer.from(await file.arrayBuffer()) };
}

/** Replaces how objects are streamed. */
function streaming(stream: (original: () => Readable, call: number) => Readable) {
  let calls = 0;
  return {
    replace: ({ store }: ExecuteDeps): Partial<ExecuteDeps> => ({
      store: Object.assign(Object.create(store) as typeof store, {
        open: store.open.bind(store),
        read: store.read.bind(store),
        stream: (key: string) => stream(() => store.stream(key), ++calls),
      }),
    }),
  };
}

describe('the form of a line', () => {
  it('has the members of the line as fields, and then the uploaded file', async () => {
    const body = {
      model: 'm',
      file_id: 'file-call',
      language: 'en',
      prompt: 'Größe\r\n"x"',
      temperature: 0.2,
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
      itn: false,
      chunking_strategy: { type: 'server_vad' },
      user: null,
    };
    world = await open([body], json);
    expect(await run()).toMatchObject({ next: 1, completed: 1 });
    const [request] = world.server.received as [Received];
    expect(request.url).toBe(ENDPOINT);
    expect(request.headers).toMatchObject({
      'content-length': String(request.body.length),
      accept: '*/*',
      'x-request-id': expect.stringMatching(/^batch_req_/),
    });
    const { fields, file, bytes } = await formOf(request);
    expect(fields).toEqual([
      ['model', 'm'],
      ['language', 'en'],
      ['prompt', 'Größe\r\n"x"'],
      ['temperature', '0.2'],
      ['response_format', 'verbose_json'],
      ['timestamp_granularities[]', 'word'],
      ['timestamp_granularities[]', 'segment'],
      ['itn', 'false'],
      ['chunking_strategy', '{"type":"server_vad"}'],
    ]);
    expect([file.name, file.type]).toEqual(['call 1.wav', 'audio/wav']);
    expect(bytes.equals(CALL.bytes)).toBe(true);
    expect((await world.answers()).get(0)?.line.response?.body).toEqual({ text: 'hello' });
  });

  it.each([
    ['', 'audio/mpeg'],
    ['data:audio/flac;base64,', 'audio/flac'],
  ])('has a recording that the line itself contains (%s)', async (prefix, type) => {
    const bytes = noise(50_001, 2);
    const data = prefix + bytes.toString('base64');
    world = await open([{ model: 'm', file_data: data, filename: 'a.mp3' }], json);
    expect(await run('/v1/audio/translations')).toMatchObject({ completed: 1 });
    const [request] = world.server.received as [Received];
    const form = await formOf(request);
    expect([form.fields, form.file.type, form.file.name]).toEqual([
      [['model', 'm']],
      type,
      'a.mp3',
    ]);
    expect(form.bytes.equals(bytes)).toBe(true);
  });

  it('has the same bytes in each try', async () => {
    const answer: Answer = (request, response, socket) => {
      if (world.server.received.length < 3) response.writeHead(500).end('{}');
      else json(request, response, socket);
    };
    world = await open([{ model: 'm', file_id: 'file-call' }], answer);
    expect(await run()).toMatchObject({ completed: 1 });
    const [first, ...others] = world.server.received.map(({ body }) => body);
    expect(others.map((body) => body.equals(first!))).toEqual([true, true]);
    const types = world.server.received.map(({ headers }) => headers['content-type']);
    expect(new Set(types).size).toBe(1);
  });
});

describe('a store that fails in the middle of a recording', () => {
  it('costs the line no try, and the server gets the form whole later', async () => {
    const failing = streaming((original, call) =>
      call > 1
        ? original()
        : Readable.from(
            (async function* () {
              yield CALL.bytes.subarray(0, 100_000);
              throw new NightshiftError('object_store_failed', 'for the test');
            })(),
          ),
    );
    const options = { ...failing, gateway: { max_retries: 0 } };
    world = await open([{ model: 'm', file_id: 'file-call' }], json, options);
    expect(await run()).toMatchObject({ next: 1, completed: 1 });
    expect(world.warnings).toContain('lines cannot be tried');
    expect(world.server.received).toHaveLength(1);
    const { bytes } = await formOf(world.server.received[0]!);
    expect(bytes.equals(CALL.bytes)).toBe(true);
  });

  it('is not taken for a recording that ends early', async () => {
    const short = streaming((original, call) =>
      call > 1 ? original() : Readable.from([CALL.bytes.subarray(0, 100_000)]),
    );
    const options = { ...short, gateway: { max_retries: 0 } };
    world = await open([{ model: 'm', file_id: 'file-call' }], json, options);
    expect(await run()).toMatchObject({ completed: 1 });
    expect(world.server.received).toHaveLength(1);
  });
});

it('ends a line whose bytes are gone, and goes on with the others', async () => {
  const bodies = [{ file_id: 'file-gone' }, { file_id: 'file-call' }];
  const files = { 'file-call': CALL, 'file-gone': { filename: 'b.wav', bytes: noise(10, 3) } };
  world = await open(bodies, json, { files });
  await world.store.delete('files/t/file-gone');
  expect(await run()).toMatchObject({ next: 2, completed: 1, failed: 1 });
  const answers = await world.answers();
  expect(answers.get(0)).toMatchObject({
    kind: FRAME_KIND.error,
    line: { custom_id: 'l0', response: null, error: { code: 'input_file_not_found' } },
  });
  expect(world.server.received).toHaveLength(1);
});

it('reserves 512 KiB for a line, and more for one that contains a large recording', async () => {
  const reserved: number[] = [];
  const replace = ({ memory }: ExecuteDeps): Partial<ExecuteDeps> => ({
    memory: {
      ...memory,
      stats: () => memory.stats(),
      reserve: (bytes, signal) => memory.reserve(bytes, signal),
      tryReserve: (bytes) => {
        const held = memory.tryReserve(bytes);
        reserved.push(memory.stats().usedBytes);
        return held;
      },
    },
  });
  const data = noise(600_000, 4).toString('base64');
  const bodies = [{ file_id: 'file-call' }, { file_data: data, filename: 'a.wav' }];
  world = await open(bodies, json, { replace }, { concurrency: { per_model: 1 } });
  expect(await run()).toMatchObject({ completed: 2 });
  expect(reserved).toEqual([512 * 1024, 800_000 + 600_000 + 256 * 1024]);
});

it('divides service by the size of recordings', async () => {
  const costs: (number | undefined)[] = [];
  const replace = ({ dispatcher }: ExecuteDeps): Partial<ExecuteDeps> => ({
    dispatcher: {
      tryAcquire: (request) => dispatcher.tryAcquire(request),
      limitOf: (model) => dispatcher.limitOf(model),
      scarcePermitOf: (model) => dispatcher.scarcePermitOf(model),
      holdReleases: () => dispatcher.holdReleases(),
      endHold: () => dispatcher.endHold(),
      wait: (request, onGranted) => {
        costs.push(request.cost);
        return dispatcher.wait(request, onGranted);
      },
    },
  });
  const files = { 'file-call': CALL, 'file-tiny': { filename: 'b.wav', bytes: noise(10, 3) } };
  world = await open([{ file_id: 'file-call' }, { file_id: 'file-tiny' }], json, {
    files,
    replace,
  });
  expect(await run()).toMatchObject({ completed: 2 });
  expect(costs).toEqual([Math.ceil(300_000 / 16_000), 1]);
});

it('stops sending a form when the chunk may no longer send, without counting a try', async () => {
  const files = { 'file-call': { filename: 'a.wav', bytes: noise(20_000_000, 5) } };
  let streams = 0;
  const freezing = streaming((original) => {
    const stream = original();
    if (++streams > 1) return stream;
    world.lease.frozen = true;
    return stream.once('close', () => (world.lease.frozen = false));
  });
  const options = { ...freezing, files, gateway: { max_retries: 0 } };
  world = await open([{ file_id: 'file-call' }], json, options);
  expect(await run()).toMatchObject({ completed: 1 });
  expect(streams).toBe(2);
  const { bytes } = await formOf(world.server.received[0]!);
  expect(bytes.equals(files['file-call'].bytes)).toBe(true);
});

it('gives recordings the time limit of audio', async () => {
  const late: Answer = (...args) => void setTimeout(() => json(...args), 300);
  const gateway = { request_timeout: '100ms', audio_request_timeout: '1m', max_retries: 0 };
  world = await open([{ file_id: 'file-call' }], late, { gateway });
  expect(await run()).toMatchObject({ completed: 1 });
});

it('takes an answer as final if the server says that another try would not help', async () => {
  const answer: Answer = (_, response) =>
    void response
      .writeHead(504, { 'x-should-retry': 'false', 'content-type': 'application/json' })
      .end('{"error":{"code":"backend_timeout"}}');
  world = await open([{ file_id: 'file-call' }], answer);
  expect(await run()).toMatchObject({ failed: 1 });
  expect(world.server.received).toHaveLength(1);
  expect((await world.answers()).get(0)?.line.response?.status_code).toBe(504);
});
