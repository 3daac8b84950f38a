import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelMapKey } from '../../core/names/object-names';
import { openFiles } from '../support/process-state';
import { chatLines } from '../support/stack';
import { until } from '../support/until';
import { STORE } from '../support/variant';
import { expectCompleted } from './expect-completed';
import type { Moment } from './frozen-worker';
import {
  freezeAt,
  hasObject,
  objectPath,
  replaceWorker,
  useTwoWorkers,
  WAIT_MS,
} from './frozen-worker';

const TEST_MS = 240_000;
const MODELS = 120;
const LONG_LINES = 60;

const scene = useTwoWorkers();

/** Whether the worker reads an object. On S3 the server opens the file for it. */
function isReading(worker: number, name: string): boolean {
  const reader = STORE === 's3' ? scene.stack.pidOf('s3') : worker;
  return openFiles(reader).some((path) => path.endsWith(name));
}

/** Folders of plans, each with the number of its plans. */
function plansOf(batchId: string): Map<string, number> {
  if (!hasObject(scene.stack, 'batches', batchId, 'plans')) return new Map();
  const folder = objectPath(scene.stack, 'batches', batchId, 'plans');
  return new Map(
    readdirSync(folder).map((nonce) => [nonce, readdirSync(join(folder, nonce)).length]),
  );
}

/**
 * Lines so long that reading them takes longer than noticing that they are read. One must be parsed, so that the upload
 * leaves no index, which would be read instead.
 */
function longLines(count: number, bytes: number): string {
  const lines = chatLines(count).replaceAll('question', 'x'.repeat(bytes));
  return lines.replace('"model":"m"', '"model":"\\u006d"');
}

const isPlanned = (id: string): boolean => hasObject(scene.stack, modelMapKey(id));
const MOMENTS: [string, Moment & { lines: number }][] = [
  [
    'while it reads the input',
    {
      ...{ text: longLines(LONG_LINES, 1024 * 1024), lines: LONG_LINES },
      isNow: (pid, { input }) => isReading(pid, input),
      isOver: isPlanned,
    },
  ],
  [
    'between its first plan and the map of models',
    {
      ...{ text: chatLines(MODELS, (i) => `m-${i}`), lines: MODELS },
      isNow: (_, { id }) => [...plansOf(id).values()].some((plans) => plans > 0),
      isOver: isPlanned,
    },
  ],
];

describe('an ingestion whose worker is frozen beyond its heartbeat timeout', () => {
  it.each(MOMENTS)(
    '%s is repeated by another worker, and the first one changes nothing when it wakes up',
    async (_, moment) => {
      const { stack, near, far } = scene;
      far.latencyMs = near.latencyMs = 500;
      const { pid, id } = await freezeAt(scene, moment);
      const [started] = [...plansOf(id).keys()];
      await scene.startSecond();
      await until(() => far.seen.length > 0, WAIT_MS, 'requests from the other worker');
      const readMap = () => readFileSync(objectPath(stack, modelMapKey(id)), 'utf8');
      const map = readMap();
      const { nonce } = JSON.parse(map) as { nonce: string };
      expect(nonce).not.toBe(started);
      expect((await stack.client.batches.retrieve(id)).status).toBe('in_progress');

      process.kill(pid, 'SIGCONT');
      if (started !== undefined) {
        const isWhole = (): boolean => plansOf(id).get(started) === MODELS;
        await until(isWhole, WAIT_MS, 'the end of the plans that it had begun');
      }
      await expectCompleted(stack.client, id, { lines: moment.lines, timeoutMs: WAIT_MS });
      await replaceWorker(stack, pid);
      expect(readMap()).toBe(map);
      // Attempts that Temporal handed to the frozen worker begin now. They learn that they are late and send
      // nothing (docs/design/execution.md#late-attempts).
      const sent = [...near.seen, ...far.seen].map(({ requestId }) => requestId);
      expect(new Set(sent).size).toBe(moment.lines);
      expect(sent).toHaveLength(moment.lines);
    },
    TEST_MS,
  );
});
