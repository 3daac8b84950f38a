import { crc32 } from 'node:zlib';
import { NO_USAGE } from '../../../core/batch/counts';
import { NightshiftError } from '../../../core/errors';
import { encodeFrame, FRAME_KIND, type FrameKind } from '../../../core/journal/frame';
import { OBJECT_HEADER_BYTES } from '../../../core/journal/magic';
import { encodeManifest } from '../../../core/journal/manifest';
import { encodeSealEnd, encodeSealHeader } from '../../../core/journal/seal';
import {
  inputErrorsKey,
  manifestKey,
  modelMapKey,
  planKey,
  sealKey,
} from '../../../core/names/object-names';
import { BATCH, BatchPlace, NONCE, type Answer, type InputLine } from './fixtures';

/** Finalization while the store fails or has lost objects: results are complete, or late, or not delivered. */

const M: InputLine = { model: 'm' };
const LOST: InputLine = { model: 'lost', unrouted: true };

let place: BatchPlace;

afterEach(() => place.remove());

async function answered(lines: readonly InputLine[], text = (at: number) => `a${at}`) {
  place = await BatchPlace.create(lines);
  const count = place.planOf('m').length;
  const output = (at: number): Answer => ({ kind: FRAME_KIND.output, text: text(at) });
  const answers = new Map(Array.from({ length: count }, (_, at) => [at, output(at)]));
  await place.segment('m', { from: 0, to: count, answers });
  expect(await place.seal('m', 0, count)).toBe(count);
}

/** Makes one operation of the store fail for matching keys, the first `times` times. */
function failing<K extends 'read' | 'open' | 'head' | 'putIfAbsent'>(
  operation: K,
  match: string,
  times = Infinity,
): void {
  const original = (place.store[operation] as (...args: unknown[]) => unknown).bind(place.store);
  let left = times;
  const broken = (...args: unknown[]): unknown => {
    if (!String(args[0]).includes(match) || left-- <= 0) return original(...args);
    return Promise.reject(new NightshiftError('object_store_failed', 'no answer'));
  };
  (place.store as unknown as Record<string, unknown>)[operation] = broken;
}

const AGAIN = { type: 'object_store_failed', nonRetryable: false };

async function expectNothing(): Promise<void> {
  expect(place.records).toEqual([]);
  expect(await place.resultLines('output')).toBeNull();
  expect(await place.resultLines('error')).toBeNull();
}

describe('an input file', () => {
  it('that cannot be read now makes finalization fail with a retryable error', async () => {
    await answered([M, LOST, M]);
    failing('open', place.inputKey!, 1);
    await expect(place.finalize('cancelled')).rejects.toMatchObject(AGAIN);
    await expectNothing();
    expect(await place.finalize('cancelled')).toMatchObject({ counts: { total: 3, failed: 1 } });
    expect(await place.resultLines('error')).toHaveLength(1);
  });

  it('that is gone ends a batch only under a stop cause', async () => {
    await answered([M, LOST, M]);
    await place.store.delete(place.inputKey!);
    await expect(place.finalize(null)).rejects.toMatchObject({ type: 'input_missing' });
    await expectNothing();
    // The first try has written a manifest without a cause. Since then the workflow has given up.
    const counts = { total: 3, completed: 2, failed: 1 };
    expect(await place.finalize('failed')).toMatchObject({ status: 'failed', counts });
    expect(place.records).toMatchObject([{ cause: 'failed', counts }]);
  });
});

describe('a manifest', () => {
  it('that cannot be read now is not treated as missing', async () => {
    await answered([M, M]);
    await place.finalize('expired');
    await place.store.delete((await place.journal.listSeals(BATCH))[0]!.key);
    failing('read', 'manifest.json', 1);
    await expect(place.finalize(null)).rejects.toMatchObject(AGAIN);
  });
});

describe('a result file', () => {
  it.each(['output', 'error'] as const)(
    'that the store does not take fails the finalization: %s',
    async (kind) => {
      await answered([M, LOST, M]);
      failing('putIfAbsent', place.resultKey(kind).split('/').at(-1)!, 1);
      await expect(place.finalize(null)).rejects.toMatchObject(AGAIN);
      expect(place.records).toEqual([]);
      expect(await place.resultLines(kind)).toBeNull();
      await place.finalize(null);
      expect(await place.resultLines('output')).toEqual(['a1', 'a0', 'a2'].slice(0, 2));
      expect(await place.resultLines('error')).toHaveLength(1);
    },
  );

  it('that the store refuses makes finalization fail while lines are still being written', async () => {
    await answered([M, M, M, M, M, M, M, M], () => 'x'.repeat(1_000_000));
    failing('putIfAbsent', place.resultKey('output').split('/').at(-1)!);
    await expect(place.finalize(null)).rejects.toMatchObject(AGAIN);
    await expectNothing();
  });
});

describe('the errors of a refused file', () => {
  it('that cannot be read now are not treated as missing', async () => {
    place = await BatchPlace.create([M]);
    await place.store.delete(modelMapKey(BATCH));
    const errors = [{ code: 'empty_file', message: 'No lines.', param: null, line: null }];
    const body = Buffer.from(JSON.stringify({ data: errors }));
    await place.store.putIfAbsent(inputErrorsKey(BATCH), body);
    failing('read', 'errors.json', 1);
    await expect(place.finalize('failed', null)).rejects.toMatchObject(AGAIN);
    await place.finalize('failed', null);
    expect(place.records).toMatchObject([{ errors }]);
  });
});

describe('a plan', () => {
  it('that is longer than its model map says ends in plan_unreadable', async () => {
    await answered([M, M]);
    const key = planKey(BATCH, NONCE, 'm');
    const plan = await place.store.read(key);
    await place.store.delete(key);
    await place.store.putIfAbsent(key, Buffer.concat([plan, plan]));
    await place.store.delete((await place.journal.listSeals(BATCH))[0]!.key);
    await expect(place.finalize('failed')).rejects.toMatchObject({ type: 'plan_unreadable' });
    await expectNothing();
  });
});

describe('a seal', () => {
  interface Frame {
    readonly offset: number;
    readonly kind?: FrameKind;
    readonly text?: string;
  }

  /** A well-formed seal with these frames, even if they contradict each other. */
  function sealBytes(frames: readonly Frame[]): Buffer {
    const encoded = frames.map(({ offset, kind = FRAME_KIND.output, text = 'an answer' }) => {
      const fields = { offset, kind, status: 200, tries: 1, usage: NO_USAGE };
      return encodeFrame(fields, Buffer.from(text), crc32);
    });
    let position = OBJECT_HEADER_BYTES;
    const places = encoded.map((bytes, i) => {
      const at = { offset: frames[i]!.offset, position };
      position += bytes.length;
      return at;
    });
    const end = encodeSealEnd(places, { count: frames.length, indexPosition: position }, crc32);
    return Buffer.concat([encodeSealHeader(), ...encoded, end]);
  }

  async function putSealed(bytes: Buffer, size = bytes.length): Promise<void> {
    const key = sealKey(BATCH, 'm', { from: 0, to: 2 }, '0'.repeat(16));
    await place.store.putIfAbsent(key, bytes);
    const manifest = { version: 1, nonce: NONCE, cause: null, closed_at: 1 } as const;
    const seals = [{ key, size }];
    await place.store.putIfAbsent(manifestKey(BATCH), encodeManifest({ ...manifest, seals }));
  }

  it('that is intact is delivered', async () => {
    place = await BatchPlace.create([M, M]);
    await putSealed(sealBytes(place.lines));
    expect(await place.finalize(null)).toMatchObject({ counts: { completed: 2 } });
  });

  it.each<[string, (offsets: readonly number[]) => Frame[], number]>([
    ['differs from the manifest', ([a = 0, b = 0]) => [{ offset: a }, { offset: b }], 1],
    ['answers a line twice', ([a = 0]) => [{ offset: a }, { offset: a }], 0],
    ['is out of order', ([a = 0, b = 0]) => [{ offset: b }, { offset: a }], 0],
    [
      'contains a retry frame',
      ([a = 0, b = 0]) => [{ offset: a }, { offset: b, kind: FRAME_KIND.retry, text: '12345678' }],
      0,
    ],
  ])('that %s ends in object_corrupt', async (_, frames, sizeOff) => {
    place = await BatchPlace.create([M, M]);
    const bytes = sealBytes(frames(place.lines.map(({ offset }) => offset)));
    await putSealed(bytes, bytes.length + sizeOff);
    await expect(place.finalize(null)).rejects.toMatchObject({ type: 'object_corrupt' });
    await expectNothing();
  });
});

it('delivers a manifest without a cause under the cause of the workflow', async () => {
  await answered([M, M]);
  await place.finalize(null);
  await place.finalize('cancelled');
  expect(place.records.map(({ cause }) => cause)).toEqual([null, 'cancelled']);
});
