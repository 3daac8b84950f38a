import { FRAME_KIND } from '../../../core/journal/frame';
import type { Answer } from '../../inference/local-server';
import { noise } from '../../support/noise';
import { chunkWorld, type ChunkWorld } from './chunk-world';

/** Lines whose answers are audio, or text. */

const AUDIO = noise(10_000, 7);

let world: ChunkWorld;
afterEach(() => world.close());

async function play(
  endpoint: string,
  body: object,
  answer: Answer,
  settings: Record<string, unknown> = {},
) {
  const files = { f: { filename: 'a.wav', bytes: AUDIO } };
  world = await chunkWorld(1, answer, settings, { bodies: [body], files });
  await world.run({ endpoint });
  return (await world.answers()).get(0)!;
}

const speak = { model: 'm', input: 'Guten Tag', voice: 'alloy' };
const sends =
  (type: string, body: Buffer | string): Answer =>
  (_, response) =>
    void response.setHeader('content-type', type).end(body);

it('sends a request for speech as it is, and keeps the audio in base64', async () => {
  const { kind, line } = await play('/v1/audio/speech', speak, sends('audio/mpeg', AUDIO));
  expect(world.server.received.map(({ body }) => body.toString())).toEqual([JSON.stringify(speak)]);
  expect(world.server.received[0]?.headers).toMatchObject({
    'content-type': 'application/json',
    accept: '*/*',
  });
  expect([kind, line.response]).toMatchObject([
    FRAME_KIND.output,
    {
      status_code: 200,
      body: {
        ...{ object: 'audio.speech', model: 'm', format: 'mp3', bytes: 10_000 },
        audio: AUDIO.toString('base64'),
      },
    },
  ]);
});

it.each([
  ['application/octet-stream', 'opus', 'opus'],
  ['audio/wav; rate=24000', 'opus', 'wav'],
  ['audio/unheard-of', undefined, 'mp3'],
])('names the format of %s for a line with %s', async (type, asked, format) => {
  const { line } = await play(
    '/v1/audio/speech',
    { ...speak, response_format: asked },
    sends(type, AUDIO),
  );
  expect(line.response?.body).toMatchObject({ format });
});

it('keeps what a server of speech says in JSON', async () => {
  const { kind, line } = await play('/v1/audio/speech', speak, (_, response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"code":"x"}}'),
  );
  expect([kind, line.response?.body]).toEqual([FRAME_KIND.error, { error: { code: 'x' } }]);
});

it.each([
  [13_336, FRAME_KIND.output],
  [13_335, FRAME_KIND.error],
])('limits audio to %d bytes of base64', async (limit, kind) => {
  const settings = { limits: { max_answer_bytes: limit } };
  const answer = await play('/v1/audio/speech', speak, sends('audio/mpeg', AUDIO), settings);
  const code = kind === FRAME_KIND.error ? 'response_too_large' : undefined;
  expect([answer.kind, answer.line.error?.code]).toEqual([kind, code]);
});

it.each([
  ['text/plain; charset=utf-8', 'Größe\u2028\n"x"'],
  ['text/vtt', 'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nhello\n'],
])('keeps a transcript that comes as %s in a member of JSON', async (type, text) => {
  const { kind, line } = await play(
    '/v1/audio/transcriptions',
    { file_id: 'f' },
    sends(type, text),
  );
  expect([kind, line.response?.body]).toEqual([FRAME_KIND.output, { text }]);
});

it.each([
  ['text/plain', Buffer.from([0xff, 0xfe, 0x41])],
  ['text/html', '<p>hello</p>'],
])('takes an answer of %s that is no transcript for an error', async (type, body) => {
  const { kind, line } = await play(
    '/v1/audio/transcriptions',
    { file_id: 'f' },
    sends(type, body),
  );
  expect([kind, line.response?.body]).toMatchObject([
    FRAME_KIND.error,
    { error: { code: 'invalid_response' } },
  ]);
});
