import fc from 'fast-check';
import { LEASE_MS } from './create-rows';
import { type Ending, type Story, tell } from './create-world';

const MINUTE = 60_000;
/**
 * For a longer hunt, with as many stories for each test:
 * STORIES=100000 npx jest --testTimeout 600000 test/core/delegation/create-protocol.test.ts
 */
const HUNT = process.env['STORIES'];
const RUNS = Number(HUNT ?? 2_000);
/** Shrinking a story that fails must not outlast the test. */
const LIMIT = HUNT === undefined ? { interruptAfterTimeLimit: 25_000 } : {};

const choices = fc.array(fc.nat(9_999), { maxLength: 250, size: 'max' });
const time = fc.oneof(fc.nat(20 * MINUTE), fc.nat(MINUTE));

const stories: fc.Arbitrary<Story> = fc.record({
  choices,
  workflows: fc.integer({ min: 1, max: 3 }),
  stopAtMs: fc.option(time, { freq: 3 }),
  restore: fc.option(
    fc.tuple(time, time).map(([a, b]) => ({ toMs: Math.min(a, b), atMs: Math.max(a, b) })),
    { freq: 2 },
  ),
  mayRefuse: fc.boolean(),
  recognisedBy: fc.constantFrom('marker', 'results'),
  foreign: fc.array(fc.record({ createdAtMs: time, lastsMs: time }), { maxLength: 3 }),
});

/** Runs the property; a failure shows the story. */
async function everyStory(
  arbitrary: fc.Arbitrary<Story>,
  check: (ending: Ending, story: Story) => void,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(arbitrary, async (story) => {
      const ending = await tell(story);
      try {
        check(ending, story);
      } catch (error) {
        throw new Error(`${String(error)}\n${ending.log.join('\n')}`);
      }
    }),
    { numRuns: RUNS, ...LIMIT },
  );
}

describe('attempts to create a job', () => {
  it('never make a second one, whatever crashes, freezes, is lost, stopped or restored', async () => {
    await everyStory(stories, ({ jobs }) => expect(jobs.length).toBeLessThanOrEqual(1));
  });

  it('make exactly one, and record it, if the batch goes on and the provider takes it', async () => {
    const lasting = stories.map((story) => ({ ...story, stopAtMs: null, mayRefuse: false }));
    await everyStory(lasting, ({ jobs, row }) => {
      expect(jobs).toHaveLength(1);
      expect(row).toEqual({ step: 'submitted', externalId: jobs[0] });
    });
  });

  it('never take a job for refused that the provider has accepted', async () => {
    const refusing = stories.map((story) => ({ ...story, mayRefuse: true }));
    await everyStory(refusing, ({ jobs, row }) => {
      if (row.step === 'refused') expect(jobs).toEqual([]);
    });
  });

  it('send nothing later than one lease after the batch was stopped', async () => {
    const stopped = fc.tuple(stories, time).map(([story, stopAtMs]) => ({ ...story, stopAtMs }));
    await everyStory(stopped, ({ lastSentMs }, { stopAtMs }) => {
      expect(lastSentMs ?? 0).toBeLessThan((stopAtMs ?? 0) + LEASE_MS);
    });
  });

  it('all end with the same job', async () => {
    await everyStory(stories, ({ jobs, ends }) => {
      for (const end of ends) {
        if (end.kind !== 'created') continue;
        expect(end).toEqual({ kind: 'created', externalId: jobs[0], surplusId: null });
      }
    });
  });

  it('take a minute at most if nothing goes wrong', async () => {
    const story = { choices: [], workflows: 1, stopAtMs: null, restore: null, mayRefuse: false };
    // Jobs of others with as many lines hold up none.
    const foreign = [{ createdAtMs: 0, lastsMs: 20 * MINUTE }];
    for (const recognisedBy of ['marker', 'results'] as const) {
      const { log, jobs } = await tell({ ...story, recognisedBy, foreign });
      expect(jobs).toHaveLength(1);
      expect(parseInt(log.at(-1) ?? '', 10)).toBeLessThan(MINUTE);
    }
  });
});
