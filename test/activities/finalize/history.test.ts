import fc from 'fast-check';
import { FRAME_KIND } from '../../../core/journal/frame';
import type { StopCause } from '../../../core/batch/status';
import { BatchPlace, type Answer, type InputLine } from './fixtures';

/**
 * Random histories of a batch: attempts that overlap, repeat each other's work, are torn by power loss,
 * seal or do not, and late attempts that write after the end. In every history, each request is in the
 * files exactly once, in input order, and the same answers make the same bytes.
 */
const MODELS = ['m', 'n'];

interface Attempt {
  readonly model: number;
  readonly from: number;
  readonly size: number;
  /** Positions of the range that are answered, in this order. */
  readonly picks: readonly number[];
  /** Bytes that power loss cuts off the segment. */
  readonly torn: number;
  readonly seals: boolean;
}

const attempt: fc.Arbitrary<Attempt> = fc.record({
  model: fc.nat(1),
  from: fc.nat(20),
  size: fc.integer({ min: 1, max: 12 }),
  picks: fc.array(fc.nat(11), { maxLength: 14 }),
  torn: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150 })),
  seals: fc.boolean(),
});
const input: fc.Arbitrary<InputLine[]> = fc.array(
  fc.record({ model: fc.constantFrom(...MODELS), unrouted: fc.constant(false) }),
  { minLength: 1, maxLength: 24 },
);
const unroutedInput = input.map((lines) =>
  lines.map((line, i) => (i % 5 === 3 ? { model: 'lost', unrouted: true } : line)),
);
const cause = fc.constantFrom<StopCause | null>(null, null, 'cancelled', 'expired', 'failed');

let place: BatchPlace | null = null;

afterEach(async () => {
  await place?.remove();
  place = null;
});

/** The answer of the model server to a line: the same for every attempt. */
function answerTo(customId: string): Answer {
  const isError = Number(customId.slice('request-'.length)) % 3 === 0;
  return {
    kind: isError ? FRAME_KIND.error : FRAME_KIND.output,
    text: `{"custom_id":"${customId}",`,
  };
}

async function play(batch: BatchPlace, step: Attempt, answer = answerTo): Promise<void> {
  const model = MODELS[step.model]!;
  const plan = batch.planOf(model);
  if (plan.length === 0) return;
  const from = step.from % plan.length;
  const to = Math.min(plan.length, from + step.size);
  const positions = step.picks.map((pick) => from + (pick % (to - from)));
  const answers = new Map(positions.map((at) => [at, answer(plan[at]!.customId)]));
  const [first] = await batch.segment(model, { from, to, answers });
  if (first !== undefined && step.torn > 0) await batch.tear(first.objectKey, step.torn);
  if (step.seals) await batch.seal(model, from, to);
}

/** Ends the batch as its workflow would: holes are run again until there are none. */
async function end(batch: BatchPlace, stop: StopCause | null) {
  for (let round = 0; round < 3; round++) {
    const result = await batch.finalize(stop);
    if (result.kind === 'done') return result;
    for (const { safe, from, to } of result.holes) {
      const model = MODELS.indexOf(safe);
      const picks = Array.from({ length: to - from }, (_, i) => i);
      await play(batch, { model, from, size: to - from, picks, torn: 0, seals: true });
    }
  }
  throw new Error('holes do not close');
}

async function answeredIds(batch: BatchPlace): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const model of MODELS) {
    const answers = await batch.answers(model, { from: 0, to: 100 });
    for (const { offset, customId } of batch.planOf(model)) {
      if (answers.has(offset)) ids.add(customId);
    }
  }
  return ids;
}

const idOf = (line: string) => /"custom_id":"([^"]*)"/.exec(line)![1]!;

async function filesOf(batch: BatchPlace) {
  return { output: await batch.resultLines('output'), error: await batch.resultLines('error') };
}

it('writes every request exactly once, in input order, with its answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(input, unroutedInput),
      fc.array(attempt, { maxLength: 8 }),
      fc.array(attempt, { maxLength: 3 }),
      cause,
      async (lines, attempts, zombies, stop) => {
        const batch = (place = await BatchPlace.create(lines));
        for (const step of attempts) await play(batch, step);
        const before = await answeredIds(batch);
        const result = await end(batch, stop);

        const { output, error } = await filesOf(batch);
        const isAnswered = (id: string) => stop === null || before.has(id);
        const expected = { output: [] as string[], error: [] as string[] };
        for (const { customId, unrouted } of batch.lines) {
          const answer = answerTo(customId);
          const isOutput = !unrouted && isAnswered(customId) && answer.kind === FRAME_KIND.output;
          expected[isOutput ? 'output' : 'error'].push(customId);
          if (isOutput) expect(output).toContain(answer.text);
        }
        expect((output ?? []).map(idOf)).toEqual(expected.output);
        expect((error ?? []).map(idOf)).toEqual(expected.error);
        const isUnanswered = (line: string) => line.includes(`"code":"batch_${stop}"`);
        const unanswered = (error ?? []).filter(isUnanswered).length;
        expect(result.counts).toEqual({
          total: batch.lines.length,
          completed: expected.output.length,
          failed: expected.error.length - unanswered,
        });

        // Late attempts write answers and seals after the end. A second run still makes the same files.
        for (const step of zombies) await play(batch, { ...step, seals: true });
        for (const kind of ['output', 'error'] as const) {
          await batch.store.delete(batch.resultKey(kind));
        }
        expect(await batch.finalize(null)).toEqual(result);
        expect(await filesOf(batch)).toEqual({ output, error });
        await batch.remove();
        place = null;
      },
    ),
    { numRuns: 40 },
  );
}, 120_000);

it('makes the same bytes from histories with different cuts, orders and repetitions', async () => {
  await fc.assert(
    fc.asyncProperty(
      input,
      fc.array(attempt, { maxLength: 6 }),
      fc.array(attempt, { maxLength: 6 }),
      async (lines, one, two) => {
        const files = [];
        for (const attempts of [one, two]) {
          const batch = (place = await BatchPlace.create(lines));
          for (const step of attempts) await play(batch, step);
          await end(batch, null);
          files.push(await filesOf(batch));
          await batch.remove();
          place = null;
        }
        expect(files[1]).toEqual(files[0]);
      },
    ),
    { numRuns: 20 },
  );
}, 120_000);

it('always chooses the same answer of several, and a success rather than an error', async () => {
  await fc.assert(
    fc.asyncProperty(
      input,
      fc.array(fc.tuple(attempt, fc.boolean()), { minLength: 1, maxLength: 8 }),
      async (lines, attempts) => {
        const batch = (place = await BatchPlace.create(lines));
        const won = new Set<string>();
        for (const [i, [step, isOutput]] of attempts.entries()) {
          await play(batch, { ...step, torn: 0, seals: false }, (customId) => {
            if (isOutput) won.add(customId);
            const kind = isOutput ? FRAME_KIND.output : FRAME_KIND.error;
            return { kind, text: `{"custom_id":"${customId}","attempt":${i}` };
          });
        }
        const result = await end(batch, 'cancelled');
        const files = await filesOf(batch);
        const inOrder = batch.lines.map(({ customId }) => customId).filter((id) => won.has(id));
        expect((files.output ?? []).map(idOf)).toEqual(inOrder);
        for (const kind of ['output', 'error'] as const) {
          await batch.store.delete(batch.resultKey(kind));
        }
        expect(await batch.finalize('cancelled')).toEqual(result);
        expect(await filesOf(batch)).toEqual(files);
        await batch.remove();
        place = null;
      },
    ),
    { numRuns: 20 },
  );
}, 120_000);
