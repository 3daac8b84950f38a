import { reportVerdicts } from '../../../cli/admin/replay-report';
import type { ReplayVerdict } from '../../../workers/replay-open';

const REPLAYS: ReplayVerdict = {
  workflowId: 'batch_1',
  workflowType: 'batchWorkflow',
  verdict: 'replays',
  events: 1234,
  divergingEvent: null,
  message: null,
};
const DIVERGES: ReplayVerdict = {
  ...REPLAYS,
  workflowId: 'batch_2',
  verdict: 'diverges',
  divergingEvent: { id: 8, type: 'ActivityTaskScheduled' },
  message: 'Nondeterminism error',
};

/** What the command prints for these verdicts, and the exit status that it sets. */
async function report(verdicts: readonly ReplayVerdict[], running: number) {
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    jest.spyOn(process[name], 'write').mockImplementation((text) => {
      printed[name] += String(text);
      return true;
    });
  }
  const before = process.exitCode;
  process.exitCode = undefined;
  async function* each() {
    yield* verdicts;
  }
  await reportVerdicts(each(), { running, limit: undefined });
  const { exitCode } = process;
  process.exitCode = before;
  jest.restoreAllMocks();
  return { ...printed, exitCode };
}

it('leaves the exit status at 0 if every open workflow replays', async () => {
  const { stdout, stderr, exitCode } = await report([REPLAYS], 1);
  expect(stdout).toBe('replays   batch_1  1,234 events\n');
  expect(stderr).toContain('1 open workflows: 1 replay, 0 diverge');
  expect(exitCode).toBeUndefined();
});

it('ends with 2 and names the first event that differs if a workflow diverges', async () => {
  const { stdout, stderr, exitCode } = await report([REPLAYS, DIVERGES], 2);
  expect(stdout).toContain(
    'diverges  batch_2  1,234 events  at event 8 ActivityTaskScheduled: Nondeterminism error',
  );
  expect(stderr).toContain('do not deploy this release');
  expect(exitCode).toBe(2);
});

it('says how many workflows were not checked', async () => {
  const { stderr } = await report([REPLAYS], 1_500);
  expect(stderr).toContain('1,499 were not checked');
});
