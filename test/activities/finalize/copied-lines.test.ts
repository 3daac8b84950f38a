import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { ResultSink } from '../../../activities/finalize/result-sink';
import { ResultsRun, type ResultTotals } from '../../../activities/finalize/write-results';
import type { LineSource } from '../../../activities/finalize/unanswered-lines';
import { NO_USAGE } from '../../../core/batch/counts';
import { encodeFrame, FRAME_KIND } from '../../../core/journal/frame';
import { FrameMerge } from '../../../storage/journal/merge/frame-merge';
import { KeptProgram } from '../../../storage/journal/merge/kept-program';
import type { FrameSource } from '../../../storage/journal/merge/frame-source';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';

/** Results that a program copies, beside those of which each line is taken one by one. */

const BATCH = `batch_${'0123456789abcdef'.repeat(2)}`;
const MODELS = ['one', 'two'];
/** A batch has lines up to here. Offsets are above 2^32, as in a large input. */
const LINES = 400;
const offsetOf = (line: number) => 2 ** 32 + line * 300;

/** How one line is answered. Few are unusual, so that runs are long. */
interface Shape {
  readonly source: number;
  readonly again: boolean;
  readonly isError: boolean;
  readonly isClamped: boolean;
  readonly model: number;
  readonly bytes: number;
  readonly unanswered: boolean;
}

const rarely = fc.nat(40).map((n) => n === 7);
const shape: fc.Arbitrary<Shape> = fc.record({
  source: fc.nat(3),
  again: rarely,
  isError: rarely,
  isClamped: rarely,
  model: fc.nat(90).map((n) => (n === 7 ? 1 : n === 8 ? 2 : 0)),
  bytes: fc.nat(200).map((n) => (n === 7 ? 700_000 : 50 * n)),
  unanswered: rarely,
});

function frame(line: number, one: Shape, text: string): Buffer {
  const model = MODELS[one.model];
  const body = { ...(model === undefined ? {} : { model }), usage: { prompt_tokens: 7 } };
  const response = { status_code: 200, body: { ...body, text: text.padEnd(one.bytes, '.') } };
  const inputTokens = one.isClamped ? 2 ** 33 : line;
  return encodeFrame(
    {
      offset: offsetOf(line),
      kind: one.isError ? FRAME_KIND.error : FRAME_KIND.output,
      ...{ status: 200, tries: 1, modelTag: model === undefined ? 0 : one.model + 1 },
      usage: {
        ...NO_USAGE,
        inputTokens,
        cachedTokens: 2,
        outputTokens: 2 ** 32 - 1,
        totalTokens: 9,
      },
    },
    Buffer.from(JSON.stringify({ id: line, custom_id: 'x', response, error: null })),
    crc32,
  );
}

async function sourcesOf(store: MemoryStore, shapes: readonly Shape[]): Promise<FrameSource[]> {
  const found: FrameSource[] = [];
  for (let number = 0; number < 4; number++) {
    const lines = [...shapes.entries()].filter(
      ([, { source, again, unanswered }]) =>
        !unanswered && (source === number || (again && (source + 1) % 4 === number)),
    );
    if (lines.length === 0) continue;
    const key = `frames/${number}`;
    const body = Buffer.concat(lines.map(([line, one]) => frame(line, one, `from ${number}`)));
    await store.putIfAbsent(key, body);
    const span = { firstOffset: offsetOf(lines[0]![0]), lastOffset: offsetOf(lines.at(-1)![0]) };
    found.push({ rankKey: key, key, start: 0, end: body.length, ...span });
  }
  return found;
}

/** Lines without an answer, whose input is gone. */
function linesOf(numbers: readonly number[]): LineSource {
  const left = numbers.map(offsetOf);
  return {
    get offset() {
      return left[0] ?? Number.POSITIVE_INFINITY;
    },
    isReady: true,
    load: async () => undefined,
    take: () => {
      const offset = left.shift()!;
      return { offset, customId: `line ${offset}`, code: 'batch_expired' };
    },
    skip: () => void left.shift(),
  };
}

interface Results {
  readonly totals: ResultTotals;
  readonly files: readonly (Buffer | undefined)[];
  readonly copied: number;
}

/** Every merge after the first one has memory that was used. */
const programs = new KeptProgram();

async function results(shapes: readonly Shape[], copiesLines: boolean): Promise<Results> {
  const store = createMemoryStore();
  const program = copiesLines ? programs.take() : null;
  const answers = new FrameMerge(store, await sourcesOf(store, shapes), program);
  const output = await ResultSink.open(store, 'files/output', answers.lineMemory);
  const error = await ResultSink.open(store, 'files/error');
  const unanswered = [...shapes.entries()].filter(([, one]) => one.unanswered);
  const missing = unanswered.map(([line]) => line);
  const run = new ResultsRun({ batchId: BATCH, output, error });
  await run.take({
    ...{ answers, onAnswers: () => undefined },
    // A line that has an answer all the same, in a rest object, is skipped.
    uncovered: linesOf([...missing.filter((line) => line % 2 === 0), 17].sort((a, b) => a - b)),
    unrouted: linesOf(missing.filter((line) => line % 2 === 1 && line !== 17)),
  });
  const totals = run.totals();
  await output.end();
  await error.end();
  await answers.close();
  const copied = answers.copied().lines;
  expect(answers.isOver).toBe(true);
  if (program !== null) programs.giveBack(program);
  const files = ['files/output', 'files/error'].map((key) => store.objects.get(key));
  return { totals, files, copied };
}

it('are the same', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(shape, { minLength: LINES, maxLength: LINES, size: 'max' }),
      async (shapes) => {
        const [copying, plain] = [await results(shapes, true), await results(shapes, false)];
        expect(copying.copied).toBeGreaterThan(LINES / 4);
        expect(plain.copied).toBe(0);
        const { lines, ...totals } = copying.totals;
        const { lines: plainLines, ...plainTotals } = plain.totals;
        expect(totals).toEqual(plainTotals);
        expect(lines.equals(plainLines)).toBe(true);
        copying.files.forEach((file, i) => expect(file?.equals(plain.files[i]!)).toBe(true));
      },
    ),
    { numRuns: 25 },
  );
});

it('name a model only if all lines agree, whoever copied them', async () => {
  const usual: Shape = {
    ...{ source: 0, again: false, isError: false, isClamped: false },
    ...{ model: 0, bytes: 3_000, unanswered: false },
  };
  const shapes = Array.from({ length: LINES }, () => usual);
  expect(await results(shapes, true)).toMatchObject({ totals: { model: 'one' } });
  shapes[LINES - 2] = { ...usual, model: 1 };
  expect(await results(shapes, true)).toMatchObject({ totals: { model: null } });
});
