import type OpenAI from 'openai';
import { setTimeout as delay } from 'node:timers/promises';
import type { ResultLine } from '../../support/stack';
import { STACK_START_MS } from '../../support/stack';
import { outcomeOf } from '../../e2e/run-batch';
import { submitTo } from './adapters';
import { planProviderRound } from './plan';
import { openProviderWorld, type ProviderWorld } from './provider-world';

/**
 * Rounds of faults for delegated models: one batch for each adapter, while calls fail and processes die. No job may
 * exist twice, no line be lost or doubled, and answers are the same as without faults
 * (docs/design/provider-jobs.md#walked-through-failures). `npm run faults -- --providers` plays more of them.
 */

const { NIGHTSHIFT_FAULT_ROUNDS = '1', NIGHTSHIFT_FAULT_SEED = '5' } = process.env;
const { NIGHTSHIFT_FAULT_FIRST_ROUND = '0' } = process.env;
const FIRST = Number(NIGHTSHIFT_FAULT_FIRST_ROUND);
const ROUNDS = Array.from({ length: Number(NIGHTSHIFT_FAULT_ROUNDS) }, (_, i) => FIRST + i);
const SEED = Number(NIGHTSHIFT_FAULT_SEED);
const LINES = 40;
/** Several uncertain creates in a row, each of which costs a lease. */
const ROUND_MS = 180_000;

let world: ProviderWorld;
/** What each line is answered without faults, by adapter. */
const undisturbed = new Map<string, Map<string, string>>();

beforeAll(async () => {
  world = await openProviderWorld();
  await Promise.all(
    world.providers.map(async ({ adapter }) => {
      const batch = await submitTo(adapter, world.stack().client, LINES);
      undisturbed.set(adapter.name, answersOf(await answered(batch)));
    }),
  );
}, STACK_START_MS + ROUND_MS);
afterAll(() => world?.close(), 60_000);

async function answered({ id }: OpenAI.Batches.Batch): Promise<readonly ResultLine[]> {
  const { batch, output, errors } = await outcomeOf(world.stack().client, id, ROUND_MS);
  expect({ status: batch.status, errors }).toEqual({ status: 'completed', errors: [] });
  return output;
}

/** The answers by `custom_id`, without what differs from call to call. */
function answersOf(output: readonly ResultLine[]): Map<string, string> {
  return new Map(
    output.map(({ custom_id, response }) => {
      const body = { ...response?.body, id: null, created: null };
      return [custom_id, JSON.stringify({ status: response?.status_code, body })];
    }),
  );
}

it.each(ROUNDS)(
  'loses, doubles and pays nothing twice in round %i',
  async (round) => {
    const { providers, parts } = world;
    const plan = planProviderRound(SEED, round, providers.length);
    await Promise.all(providers.map((one, i) => one.configure(plan.providers[i]!)));
    const before = await Promise.all(providers.map((one) => one.creates()));
    const { client } = world.stack();
    const batches = await Promise.all(
      providers.map(({ adapter }) => submitTo(adapter, client, LINES)),
    );
    const strikes = plan.strikes.map(async ({ atMs, ...strike }) => {
      await delay(atMs);
      await parts.strike(strike);
    });
    const outputs = await Promise.all(batches.map(answered));
    await Promise.all(strikes);
    for (const [i, { adapter, creates }] of providers.entries()) {
      const output = outputs[i]!;
      expect(output.map(({ custom_id }) => custom_id)).toEqual(customIds());
      expect(answersOf(output)).toEqual(undisturbed.get(adapter.name));
      const after = await creates();
      expect(Object.values(after).filter((jobs) => jobs !== 1)).toEqual([]);
      expect(Object.keys(after).length).toBeGreaterThan(Object.keys(before[i]!).length);
    }
    await parts.calm();
  },
  ROUND_MS + 60_000,
);

function customIds(): string[] {
  return Array.from({ length: LINES }, (_, i) => `c-${i}`);
}
