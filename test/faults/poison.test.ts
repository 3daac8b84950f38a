import type { RecordingBackend, Seen } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import { ownerOfPort } from '../support/process-state';
import type { TestStack } from '../support/stack';
import {
  chatLines,
  resultLines,
  STACK_START_MS,
  startStack,
  submit,
  untilTerminal,
} from '../support/stack';
import { until } from '../support/until';
import { PROCESSES } from '../support/variant';

/** The first chunk fails as a whole; its halves show which line is the killer. */
const LINES = 2;
const KILLER = 'question 1 ';
/** Long enough for an innocent request to be in flight whenever the killer is sent. */
const INNOCENT_MS = 1_500;
const END_MS = 150_000;

let backend: RecordingBackend;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend(50);
  stack = await startStack({
    config: {
      global_inference_gateway: { url: backend.url, request_timeout: '60s', max_retries: 8 },
      concurrency: { global: 40, per_model: 40 },
      worker: { heartbeat_timeout: '2s' },
    },
    // So little memory for the worker that parsing an answer of a few megabytes would exhaust it.
    env: { NODE_OPTIONS: '--max-old-space-size=140' },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);

const isKiller = ({ body }: Seen): boolean => body.includes(KILLER);

/** Kills the process that sent the request before it gets the answer. */
function killSender({ port }: Seen): void {
  const workers = stack.pidsOf('worker');
  const sender = PROCESSES === 1 ? workers[0] : ownerOfPort(port, workers);
  // None while it is being restarted.
  if (sender != null) process.kill(sender, 'SIGKILL');
}

async function expectInnocent(id: string, lines: number): Promise<void> {
  const done = await untilTerminal(stack.client, id, END_MS);
  const counts = { total: lines, completed: lines, failed: 0 };
  expect(done).toMatchObject({ status: 'completed', request_counts: counts, error_file_id: null });
}

/** Small on the wire, but parsed it would exceed the memory of the worker. */
const HUGE = `{"a":[${'{},'.repeat(6_000_000)}{}]}`;

describe('a line that kills its worker', () => {
  it(
    'ends as internal_error; all other lines, also of other batches, are answered',
    async () => {
      backend.seen.length = 0;
      const isInnocent = ({ body }: Seen): boolean => body.includes('slowly');
      let hasStruck = false;
      backend.latencyOf = (seen) => (isInnocent(seen) ? INNOCENT_MS : null);
      // Held until all of them are in flight.
      backend.hold = (seen) => isInnocent(seen) && !hasStruck;
      backend.judge = (seen) => {
        if (!isKiller(seen)) return null;
        hasStruck = true;
        killSender(seen);
        return null;
      };
      const innocents = [1, 12].map((count) => chatLines(count).replaceAll('question', 'slowly'));
      const beside = await Promise.all(innocents.map((text) => submit(stack.client, text)));
      await until(() => backend.inFlight() === 13, 30_000, 'innocent requests in flight');
      const firstWorkers = stack.pidsOf('worker');
      const killing = chatLines(LINES).replace('question 1"', `${KILLER}"`);
      const { id } = await submit(stack.client, killing);

      const done = await untilTerminal(stack.client, id, END_MS);
      expect(done).toMatchObject({
        status: 'completed',
        request_counts: { total: LINES, completed: LINES - 1, failed: 1 },
      });
      const errors = await resultLines(stack.client, done.error_file_id);
      expect(errors).toMatchObject([{ custom_id: 'c-1', error: { code: 'internal_error' } }]);
      const results = await resultLines(stack.client, done.output_file_id);
      expect(results.map((line) => line.custom_id)).toEqual(['c-0']);
      expect(stack.pidsOf('worker')).not.toEqual(firstWorkers);
      // Once within the activity of the small batch, in three attempts together with the other line, some of which
      // may end before their first heartbeat, and in three exclusive ones.
      const sent = backend.seen.filter(isKiller).length;
      expect(sent).toBeGreaterThanOrEqual(4);
      expect(sent).toBeLessThanOrEqual(7);
      await expectInnocent(beside[0]!.id, 1);
      await expectInnocent(beside[1]!.id, 12);
    },
    END_MS + 60_000,
  );
});

it(
  'an answer that would exhaust the memory of its worker if parsed is delivered unchanged',
  async () => {
    backend.judge = (seen) => (isKiller(seen) ? { status: 200, body: HUGE } : null);
    const workers = stack.pidsOf('worker');
    expect(workers).toHaveLength(PROCESSES);
    const { id } = await submit(
      stack.client,
      chatLines(LINES).replace('question 1"', `${KILLER}"`),
    );
    await expectInnocent(id, LINES);
    expect(stack.pidsOf('worker')).toEqual(workers);
  },
  END_MS,
);
