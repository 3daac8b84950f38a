import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CancelledFailure } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { parseManifest } from '../../../core/journal/manifest';
import { batchPrefix, manifestKey, modelMapKey } from '../../../core/names/object-names';
import { encodeModelMap, parseModelMap } from '../../../core/plan/model-map';
import { MAX_OPEN_SOURCES } from '../../../storage/journal/merge/frame-merge';
import { BATCH, BatchPlace, error, models, output } from './fixtures';

let place: BatchPlace;

afterEach(() => place.remove());

describe('finalization without a cause', () => {
  it('writes both files in input order and records counts, usage and model', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm', 'm', 'm'));
    await place.answerAll('m', 0, 2, error);
    await place.answerAll('m', 2, 5);
    const result = await place.finalize(null);
    const counts = { total: 5, completed: 3, failed: 2 };
    expect(result).toMatchObject({ kind: 'done', status: 'completed', counts });
    const even = ['request-0 of m', 'request-2 of m', 'request-4 of m'];
    expect(await place.resultLines('output')).toEqual(even);
    expect(await place.resultLines('error')).toEqual(['request-1 of m', 'request-3 of m']);
    expect(place.records).toHaveLength(1);
    expect(place.records[0]).toMatchObject({
      batchId: BATCH,
      cause: null,
      counts,
      usage: { inputTokens: 6, totalTokens: 15 },
      model: 'm',
      outputFile: { bytes: 45, filename: `${BATCH}_output.jsonl` },
      errorFile: {
        bytes: 30,
        filename: `${BATCH}_error.jsonl`,
        objectKey: place.resultKey('error'),
      },
      errors: null,
    });
  });

  it('writes its phase only if it is asked to', async () => {
    place = await BatchPlace.create(models('m'));
    await place.answerAll('m', 0, 1);
    await place.finalize(null);
    expect(place.phases).toEqual([]);
    place.announces = true;
    await place.finalize(null);
    expect(place.phases).toEqual(['finalizing']);
  });

  it.each([
    [50_000, []],
    [50_001, ['finalizing']],
  ])('writes the phase of %s lines that are ended early: %j', async (lineCount, phases) => {
    place = await BatchPlace.create(models('m'));
    place.isBounded = true;
    const key = modelMapKey(BATCH);
    const map = parseModelMap(await place.store.read(key));
    await place.store.delete(key);
    await place.store.putIfAbsent(key, encodeModelMap({ ...map, line_count: lineCount }));
    expect(await place.finalize(null)).toMatchObject({ kind: 'holes' });
    expect(place.phases).toEqual([]);
    await place.answerAll('m', 0, 1);
    // It is written with the manifest, before the lines are found to be too few.
    await expect(place.finalize(null)).rejects.toMatchObject({ type: 'object_corrupt' });
    expect(place.phases).toEqual(phases);
  });

  it('ends the batch if its phase cannot be written', async () => {
    place = await BatchPlace.create(models('m'));
    await place.answerAll('m', 0, 1);
    place.announces = true;
    place.onPhase = () => Promise.reject(new Error('away'));
    expect(await place.finalize(null)).toMatchObject({ kind: 'done', status: 'completed' });
  });

  it('returns the unanswered ranges and writes nothing while positions are not sealed', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm', 'm', 'n', 'n'));
    await place.answerAll('m', 1, 3);
    // Answered, but in no seal: still a hole.
    await place.segment('n', { from: 0, to: 2, answers: new Map([[0, output('x')]]) });
    expect(await place.finalize(null)).toEqual({
      kind: 'holes',
      holes: [
        { safe: 'm', from: 0, to: 1 },
        { safe: 'm', from: 3, to: 4 },
        { safe: 'n', from: 0, to: 2 },
      ],
    });
    expect(await place.store.head(manifestKey(BATCH))).toBeNull();
    expect(place.records).toEqual([]);
  });

  it('writes no output file if every line failed', async () => {
    place = await BatchPlace.create(models('m', 'm'));
    await place.answerAll('m', 0, 2, error);
    const result = await place.finalize(null);
    expect(result).toMatchObject({ outputFileId: null, counts: { completed: 0, failed: 2 } });
    expect(await place.resultLines('output')).toBeNull();
    expect(place.records[0]?.outputFile).toBeNull();
  });

  it('records no model if lines name several', async () => {
    place = await BatchPlace.create(models('m', 'n'));
    await place.answerAll('m', 0, 1);
    await place.answerAll('n', 0, 1);
    await place.finalize(null);
    expect(place.records[0]?.model).toBeNull();
    expect(await place.resultLines('output')).toEqual(['request-0 of m', 'request-1 of n']);
  });

  it.each([false, true])(
    'writes lines of unrouted models in their place (BOM: %s)',
    async (bom) => {
      const lost = { model: 'lost', unrouted: true };
      place = await BatchPlace.create([lost, ...models('m', 'm'), lost, ...models('m'), lost], {
        bom,
      });
      await place.answerAll('m', 0, 3, error);
      const result = await place.finalize(null);
      expect(result).toMatchObject({ counts: { total: 6, completed: 0, failed: 6 } });
      const lines = await place.resultLines('error');
      const unrouted = (i: number) => place.unansweredLine(place.lines[i]!, 'model_not_found');
      expect(lines?.map((line) => line.split(',"message"')[0])).toEqual([
        unrouted(0),
        'request-1 of m',
        'request-2 of m',
        unrouted(3),
        'request-4 of m',
        unrouted(5),
      ]);
      expect(place.records[0]?.model).toBeNull();
    },
  );

  it('ends a batch that has only unrouted lines', async () => {
    place = await BatchPlace.create([{ model: 'lost', unrouted: true }]);
    expect(await place.finalize(null)).toMatchObject({ counts: { total: 1, failed: 1 } });
    expect(place.records[0]?.model).toBe('lost');
  });

  it('prefers the output line if seals overlap, and otherwise the smaller object name', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm'));
    await place.answerAll('m', 0, 2, error);
    const again = new Map([0, 1, 2].map((at) => [at, output(`second ${at}`)]));
    await place.segment('m', { from: 1, to: 3, answers: again });
    await place.seal('m', 1, 3);
    await place.finalize(null);
    const [first, second, third] = place.planOf('m').map(({ customId }) => customId);
    expect([first, second, third]).toEqual(['request-1', 'request-0', 'request-2']);
    expect(await place.resultLines('error')).toEqual(['request-1 of m']);
    expect(await place.resultLines('output')).toEqual(['second 1', 'second 2']);
  });
});

describe('finalization under a cause', () => {
  it('writes answers outside all seals to rest objects, and gives the other lines the code of the cause', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm', 'm', 'm', 'm'));
    await place.answerAll('m', 0, 2);
    const answers = new Map([
      [3, output('three')],
      [5, error('five')],
    ]);
    await place.segment('m', { from: 2, to: 6, answers });
    const torn = { from: 2, to: 6, answers: new Map([[4, output('torn')]]) };
    const [lost] = await place.segment('m', torn);
    await place.tear(lost!.objectKey, 1);
    const result = await place.finalize('cancelled');
    expect(result).toMatchObject({
      status: 'cancelled',
      counts: { total: 6, completed: 3, failed: 1 },
    });
    // Plan order is 1, 3, 5, 0, 2, 4: so position 3 is request-0, and position 5 request-4.
    const files = [await place.resultLines('output'), await place.resultLines('error')];
    expect(files[0]).toEqual(['three', 'request-1 of m', 'request-3 of m']);
    expect(files[1]?.map((line) => line.split(',"message"')[0])).toEqual([
      place.unansweredLine(place.lines[2]!, 'batch_cancelled'),
      'five',
      place.unansweredLine(place.lines[5]!, 'batch_cancelled'),
    ]);
    const manifest = parseManifest(await place.store.read(manifestKey(BATCH)));
    expect(manifest.cause).toBe('cancelled');
    expect(manifest.seals.filter(({ key }) => key.includes('/rest.'))).toHaveLength(1);
  });

  it('gives every line of a batch that never ran the code of the cause', async () => {
    place = await BatchPlace.create(models('m', 'n', 'm'));
    const result = await place.finalize('expired');
    expect(result).toMatchObject({
      status: 'expired',
      counts: { total: 3, completed: 0, failed: 0 },
    });
    const lines = (await place.resultLines('error'))!.map((line) => line.split(',"message"')[0]);
    expect(lines).toEqual(place.lines.map((line) => place.unansweredLine(line, 'batch_expired')));
    expect(await place.resultLines('output')).toBeNull();
  });

  it('delivers the existing answers when the input is gone', async () => {
    place = await BatchPlace.create([...models('m', 'm'), { model: 'lost', unrouted: true }]);
    await place.answerAll('m', 0, 1);
    await place.store.delete(place.inputKey!);
    const result = await place.finalize('failed');
    expect(result).toMatchObject({
      status: 'failed',
      counts: { total: 3, completed: 1, failed: 1 },
    });
    expect(await place.resultLines('output')).toEqual(['request-1 of m']);
    expect(await place.resultLines('error')).toBeNull();
  });
});

describe('a manifest', () => {
  it('that exists decides seals and cause, even if more answers were sealed later', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm'));
    await place.answerAll('m', 0, 1);
    const first = await place.finalize('expired');
    const bytes = await place.store.read(place.resultKey('error'));
    await place.answerAll('m', 0, 3);
    await place.store.delete(place.resultKey('error'));
    await place.store.delete(place.resultKey('output'));
    const second = await place.finalize(null);
    expect(second).toEqual(first);
    expect(Buffer.compare(await place.store.read(place.resultKey('error')), bytes)).toBe(0);
    expect(place.records.map(({ cause }) => cause)).toEqual(['expired', 'expired']);
  });

  it('without a cause still delivers every line when the batch is cancelled afterwards', async () => {
    place = await BatchPlace.create(models('m', 'm'));
    await place.answerAll('m', 0, 2);
    await place.finalize(null);
    place.rowCause = 'cancelled';
    const result = await place.finalize('cancelled');
    expect(result).toMatchObject({ status: 'cancelled', counts: { total: 2, completed: 2 } });
  });

  it('is decided once when two finalizations run at the same time', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm'));
    await place.segment('m', { from: 0, to: 3, answers: new Map([[1, output('one')]]) });
    const causes = ['cancelled', 'expired', 'failed'] as const;
    const results = await Promise.all(causes.map((cause) => place.finalize(cause)));
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
    const lines = await place.resultLines('error');
    expect(lines).toHaveLength(2);
  });

  it('whose seals are missing or changed ends in object_corrupt, without files', async () => {
    place = await BatchPlace.create(models('m', 'm'));
    await place.answerAll('m', 0, 2);
    await place.finalize(null);
    await place.store.delete(place.resultKey('output'));
    const [seal] = await place.journal.listSeals(BATCH);
    await place.tear(seal!.key, 1);
    await expect(place.finalize(null)).rejects.toMatchObject({
      type: 'object_corrupt',
      nonRetryable: true,
    });
    await place.store.delete(seal!.key);
    await expect(place.finalize(null)).rejects.toMatchObject({ type: 'object_corrupt' });
    expect(await place.resultLines('output')).toBeNull();
  });
});

describe('result files', () => {
  it('that exist are kept as they are', async () => {
    place = await BatchPlace.create(models('m'));
    await place.answerAll('m', 0, 1);
    await place.store.putIfAbsent(place.resultKey('output'), Buffer.from('from an earlier run\n'));
    await place.finalize(null);
    expect(await place.resultLines('output')).toEqual(['from an earlier run']);
    expect(place.records[0]).toMatchObject({ outputFile: { bytes: 20 }, counts: { completed: 1 } });
  });

  it('can be made from more seals than may be open at once, and leave no scratch objects', async () => {
    const count = 2 * MAX_OPEN_SOURCES + 40;
    place = await BatchPlace.create(models(...Array.from({ length: 2 * count }, () => 'm')));
    const plan = place.planOf('m');
    const answers = new Map(plan.map(({ customId }, at) => [at, output(customId)]));
    const frames = await place.segment('m', { from: 0, to: plan.length, answers });
    frames.sort((a, b) => a.header.offset - b.header.offset);
    const all = { from: 0, to: plan.length };
    // Every seal spans the whole input, so none can be closed before the last line.
    for (let i = 0; i < count; i++) {
      const few = frames.filter(
        (_, at) => at === 0 || at === frames.length - 1 || at % count === i,
      );
      await place.journal.writeSeal({ batchId: BATCH, safeModel: 'm' }, 'rest', few);
    }
    await place.journal.writeSeal({ batchId: BATCH, safeModel: 'm' }, all, frames);
    const seals = await place.journal.listSeals(BATCH);
    const manifest = {
      version: 1,
      nonce: 'aaaabbbbccccdddd',
      cause: null,
      seals: seals.map(({ key, size }) => ({ key, size })),
      closed_at: 1,
    };
    await place.store.putIfAbsent(manifestKey(BATCH), Buffer.from(JSON.stringify(manifest)));
    const puts = jest.spyOn(place.store, 'putIfAbsent');
    const result = await place.finalize(null);
    expect(puts.mock.calls.filter(([key]) => key.includes('/scratch/'))).toHaveLength(3);
    expect(result).toMatchObject({ counts: { total: 2 * count, completed: 2 * count } });
    expect(await place.resultLines('output')).toEqual(place.lines.map(({ customId }) => customId));
    for await (const { key } of place.store.list(`${batchPrefix(BATCH)}scratch/`)) {
      throw new Error(`${key} was left behind`);
    }
  });

  it('hold answers larger than any window and block', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm'));
    const big = 'x'.repeat(3_000_000);
    await place.answerAll('m', 0, 3, (text) => output(text.startsWith('request-1') ? big : text));
    await place.finalize(null);
    expect(await place.resultLines('output')).toEqual(['request-0 of m', big, 'request-2 of m']);
  });
});

describe('a finalization that died', () => {
  it.each([
    ['after the manifest', []],
    ['between its two files', ['error']],
    ['between its two files, the other way round', ['output']],
    ['before its record', ['output', 'error']],
  ] as const)('%s is finished by the next one, with the same bytes', async (_, made) => {
    place = await BatchPlace.create([...models('m', 'm', 'm'), { model: 'none', unrouted: true }]);
    await place.answerAll('m', 0, 3);
    const first = await place.finalize(null);
    const bytesOf = async () => [
      await place.store.read(place.resultKey('output')),
      await place.store.read(place.resultKey('error')),
    ];
    const before = await bytesOf();
    for (const kind of ['output', 'error'] as const) {
      if (!(made as readonly string[]).includes(kind))
        await place.store.delete(place.resultKey(kind));
    }
    expect(await place.finalize(null)).toEqual(first);
    expect(await bytesOf()).toEqual(before);
    expect(place.records[1]).toEqual(place.records[0]);
  });

  it('in the middle of a file leaves no partial object under its key', async () => {
    place = await BatchPlace.create(models('m', 'm', 'm'));
    await place.answerAll('m', 0, 3);
    const half = join(place.path, 'tmp', '4711-0123456789abcdef');
    await writeFile(half, 'request-0 of m\nrequ');
    const result = await place.finalize(null);
    expect(result).toMatchObject({ kind: 'done', counts: { total: 3, completed: 3 } });
    expect(await place.resultLines('output')).toHaveLength(3);
    // The temporary file may belong to a running writer. The sweep removes it after a day.
    expect(await readdir(join(place.path, 'tmp'))).toEqual(['4711-0123456789abcdef']);
  });
});

it('stops when the activity is cancelled, and leaves no file', async () => {
  place = await BatchPlace.create(models('m', 'm'));
  await place.answerAll('m', 0, 2);
  const env = new MockActivityEnvironment();
  jest.spyOn(place.journal, 'listSeals').mockImplementationOnce(async () => {
    env.cancel();
    return [];
  });
  await expect(place.finalize('cancelled', undefined, env)).rejects.toThrow(CancelledFailure);
  expect(await place.resultLines('output')).toBeNull();
  expect(await place.resultLines('error')).toBeNull();
  expect(place.records).toEqual([]);
});
