import { isAscii, isUtf8 } from 'node:buffer';
import { writePlan } from '../../../activities/ingest/outcome';
import { createPlanCollector } from '../../../activities/ingest/plan-collector';
import { planKey, runsKey } from '../../../core/names/object-names';
import { createLineScanner } from '../../../core/openai/line-scanner';
import { decodePlanEntry, PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import { decodeRuns } from '../../../core/plan/runs';
import { RULES } from '../../core/openai/scan';
import { createMemoryStore } from '../../support/memory-store';

const BATCH = `batch_${'5e'.repeat(16)}`;

/** Plans lines with these prompts. Returns their numbers in the order of sending, and their runs. */
async function plan(prompts: readonly string[]) {
  const collector = createPlanCollector({ isRouted: () => true, maxUndecided: 0 });
  const offsets: number[] = [];
  const scanner = createLineScanner({
    index: null,
    rules: RULES,
    checks: { isAscii, isUtf8 },
    seed: 7,
    sink: {
      request: (request) => {
        offsets.push(request.offset);
        collector.add(request);
      },
      fault: ({ message }) => {
        throw new Error(message);
      },
    },
  });
  prompts.forEach((content, i) => {
    const body = { model: 'm', messages: [{ role: 'user', content }] };
    const line = { custom_id: String(i), method: 'POST', url: RULES.endpoint, body };
    scanner.push(Buffer.from(`${JSON.stringify(line)}\n`));
  });
  scanner.end();
  const store = createMemoryStore();
  const result = await writePlan(store, BATCH, {
    plan: collector,
    lineCount: prompts.length,
    files: null,
  });
  if (result.kind !== 'planned') throw new Error('not planned');
  const bytes = store.objects.get(planKey(BATCH, result.nonce, 'm')) ?? Buffer.alloc(0);
  const runs = store.objects.get(runsKey(BATCH, result.nonce, 'm'));
  const range = { from: 0, to: prompts.length };
  return {
    order: Array.from({ length: bytes.length / PLAN_ENTRY_BYTES }, (_, i) =>
      offsets.indexOf(decodePlanEntry(bytes, i).offset),
    ),
    runs: runs === undefined ? null : [...decodeRuns(runs, range)],
  };
}

describe('the plan of a file', () => {
  it('has lines that share a long prefix back to back, and an object with their runs', async () => {
    const prompts = ['a', 'b', 'a', 'c', 'b', 'a'].map((text, i) => `${text.repeat(300)} ${i}`);
    expect(await plan(prompts)).toEqual({ order: [0, 2, 5, 1, 4, 3], runs: [1, 0, 0, 1, 0, 2] });
  });

  it('has no such object if no prompts share anything', async () => {
    expect(await plan(['a', 'b', 'c'])).toEqual({ order: [0, 1, 2], runs: null });
    const long = ['a', 'b', 'c'].map((text) => text.repeat(300));
    expect(await plan(long)).toEqual({ order: [0, 1, 2], runs: null });
  });
});
