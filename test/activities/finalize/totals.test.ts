import { crc32 } from 'node:zlib';
import type { StopCause } from '../../../core/batch/status';
import { NO_USAGE } from '../../../core/batch/counts';
import { NightshiftError } from '../../../core/errors';
import { encodeFrame, FRAME_KIND } from '../../../core/journal/frame';
import type { Manifest } from '../../../core/journal/manifest';
import { encodeManifest } from '../../../core/journal/manifest';
import { manifestKey, modelMapKey, planKey, sealKey } from '../../../core/names/object-names';
import { embedAnswer } from '../../../core/openai/answer';
import { encodeModelMap, parseModelMap } from '../../../core/plan/model-map';
import { BATCH, BatchPlace, NONCE, type Answer } from './fixtures';

const SCOPE = { batchId: BATCH, safeModel: 'm' };
const LINES = [{ model: 'm' }, { model: 'm' }, { model: 'm' }];

let place: BatchPlace;

beforeEach(async () => (place = await BatchPlace.create(LINES)));
afterEach(() => place.remove());

/** Answers and seals the plan positions `[from, to)`. */
async function seal(from: number, to: number): Promise<void> {
  const answers = new Map<number, Answer>();
  for (let at = from; at < to; at++) answers.set(at, { kind: FRAME_KIND.output, text: `a${at}` });
  await place.segment('m', { from, to, answers });
  expect(await place.seal('m', from, to)).toBe(to);
}

/** Seals an answer to a line that is in no plan. */
async function sealStranger(): Promise<void> {
  const writer = place.journal.openWriter(SCOPE, { from: 0, to: 1 });
  const header = { offset: 999_999, kind: FRAME_KIND.output, status: 200, tries: 1 };
  const fields = { ...header, usage: NO_USAGE };
  const payload = Buffer.from('nobody asked');
  writer.append({ ...fields, payloadLength: payload.length }, encodeFrame(fields, payload, crc32));
  await writer.close();
  await place.journal.writeSeal(SCOPE, 'rest', [...writer.frames]);
}

/** Writes a manifest that names all existing seals. */
async function putManifest(change: Partial<Manifest>): Promise<void> {
  const seals = await place.journal.listSeals(BATCH);
  const named = seals.map(({ key, size }) => ({ key, size }));
  const manifest = { version: 1, nonce: NONCE, cause: null, seals: named, closed_at: 1 } as const;
  await place.store.putIfAbsent(manifestKey(BATCH), encodeManifest({ ...manifest, ...change }));
}

async function expectRefused(cause: StopCause | null, type: string): Promise<void> {
  await expect(place.finalize(cause)).rejects.toMatchObject({ type, nonRetryable: true });
  expect(await place.resultLines('output')).toBeNull();
  expect(await place.resultLines('error')).toBeNull();
  expect(place.records).toEqual([]);
}

describe('a finalization delivers nothing', () => {
  it('if a seal lacks an answer', async () => {
    await seal(0, 2);
    await putManifest({});
    await expectRefused(null, 'object_corrupt');
  });

  it.each<StopCause | null>([null, 'cancelled'])(
    'where a seal answers a line that was never planned, under cause %s',
    async (cause) => {
      await seal(0, 3);
      await sealStranger();
      await putManifest({ cause });
      await expectRefused(cause, 'object_corrupt');
    },
  );

  it.each([
    ['every planned line is answered, but the input has more lines', 3, 4],
    ['the totals agree, but a planned line has no answer', 2, 2],
    ['the totals agree, but an answer belongs to none of its lines', 3, 4],
  ])('if %s', async (what, answered, lineCount) => {
    await seal(0, answered);
    if (what.includes('to none')) await sealStranger();
    const key = modelMapKey(BATCH);
    const map = parseModelMap(await place.store.read(key));
    await place.store.delete(key);
    await place.store.putIfAbsent(key, encodeModelMap({ ...map, line_count: lineCount }));
    await putManifest({});
    await expectRefused(null, 'object_corrupt');
  });

  it.each<StopCause | null>([null, 'cancelled'])(
    'if a planned line has no answer but an unknown line has one, under cause %s',
    async (cause) => {
      await seal(0, 2);
      const [whole] = await place.journal.listSeals(BATCH);
      await sealStranger();
      // The name of the first seal claims that it answers every line.
      const key = sealKey(BATCH, 'm', { from: 0, to: 3 }, 'f'.repeat(16));
      await place.store.putIfAbsent(key, await place.store.read(whole!.key));
      await place.store.delete(whole!.key);
      await putManifest({ cause });
      await expectRefused(cause, 'object_corrupt');
    },
  );

  it('if the manifest was made for another plan', async () => {
    await seal(0, 3);
    await putManifest({ nonce: 'eeeeffffeeeeffff' });
    await expectRefused(null, 'plan_unreadable');
    await expectRefused('failed', 'plan_unreadable');
  });
});

it('delivers the answers even if the plan is gone, if every line has one', async () => {
  await seal(0, 3);
  await place.store.delete(planKey(BATCH, NONCE, 'm'));
  expect(await place.finalize(null)).toMatchObject({ status: 'completed' });
  expect(await place.resultLines('output')).toHaveLength(3);
});

it('fails with a retryable error if a plan cannot be read now', async () => {
  await seal(0, 3);
  const open = place.store.open.bind(place.store);
  place.store.open = (key) =>
    key === planKey(BATCH, NONCE, 'm')
      ? Promise.reject(new NightshiftError('object_store_failed', 'no answer'))
      : open(key);
  const again = { type: 'object_store_failed', nonRetryable: false };
  await expect(place.finalize(null)).rejects.toMatchObject(again);
  expect(place.records).toEqual([]);
  place.store.open = open;
  expect(await place.finalize(null)).toMatchObject({ status: 'completed' });
});

it('sums token counts beyond 32 bits as the model server reported them', async () => {
  const answerOf = (usage: string): Answer => {
    const embedded = embedAnswer(200, Buffer.from(`{"usage":${usage}}`));
    const text = `{"id":"a","custom_id":"b","response":{"status_code":200,"body":${embedded.json.toString()}},"error":null}`;
    return { kind: FRAME_KIND.output, text, usage: embedded.usage };
  };
  const answers = new Map([
    [0, answerOf('{"prompt_tokens":5000000000,"completion_tokens":7}')],
    [1, answerOf('{"prompt_tokens":4294967295,"completion_tokens":1}')],
    [2, answerOf('{"prompt_tokens":9007199254740991,"completion_tokens":-3,"total_tokens":1e40}')],
  ]);
  await place.segment('m', { from: 0, to: 3, answers });
  expect(await place.seal('m', 0, 3)).toBe(3);
  await place.finalize(null);
  expect(place.records[0]?.usage).toEqual({
    ...NO_USAGE,
    inputTokens: Number.MAX_SAFE_INTEGER,
    outputTokens: 8,
    totalTokens: Number.MAX_SAFE_INTEGER,
  });
});

it('does not truncate a count of five billion tokens to 32 bits', async () => {
  const body = '{"usage":{"input_tokens":5000000000,"output_tokens":2}}';
  const { usage } = embedAnswer(200, Buffer.from(body));
  const text = `{"id":"a","custom_id":"b","response":{"status_code":200,"body":${body}},"error":null}`;
  const answer: Answer = { kind: FRAME_KIND.output, text, usage };
  await place.segment('m', {
    from: 0,
    to: 3,
    answers: new Map([0, 1, 2].map((at) => [at, answer])),
  });
  expect(await place.seal('m', 0, 3)).toBe(3);
  await place.finalize(null);
  expect(place.records[0]?.usage).toMatchObject({
    inputTokens: 15_000_000_000,
    outputTokens: 6,
    totalTokens: 15_000_000_006,
  });
});
