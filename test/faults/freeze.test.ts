import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { resultFileId } from '../../core/names/ids';
import { manifestKey } from '../../core/names/object-names';
import { chatLines, submit, untilTerminal } from '../support/stack';
import { customIdsIn, journalledAnswers } from '../support/journal-files';
import { exists, isGone } from '../support/process-state';
import type { Seen } from '../support/recording-backend';
import { until } from '../support/until';
import { STORE } from '../support/variant';
import { expectCompleted } from './expect-completed';
import {
  freezeAt,
  hasObject,
  IN_FLIGHT,
  objectPath,
  replaceWorker,
  useTwoWorkers,
  WAIT_MS,
} from './frozen-worker';
import type { SecondWorker } from './round/second-worker';

const TEST_MS = 240_000;
/** The end of a log that a failure shows. */
const LOG_CHARACTERS = 4_000;

const scene = useTwoWorkers();

/** Where versitygw keeps uploads that are not complete. */
const UPLOADS = '.sgwtmp';

/** Every object with a digest of its bytes. */
function everyObject(): Record<string, string> {
  const found = readdirSync(objectPath(scene.stack), { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    found
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !path.includes(UPLOADS))
      .map((path) => [path, createHash('sha256').update(readFileSync(path)).digest('hex')]),
  );
}

function hasResultFile(batchId: string): boolean {
  const id = resultFileId(batchId, 'output');
  const tenants = readdirSync(objectPath(scene.stack, 'files'));
  return tenants.some((tenant) => hasObject(scene.stack, 'files', tenant, id));
}

/**
 * Sizes of the objects that a process has not finished. On S3 those of all processes, since the server does
 * not say whose an upload is.
 */
function unfinishedOf(pid: number): number[] {
  if (STORE === 's3') return unfinishedUploads();
  const folder = join(scene.stack.dataDir, 'objects', 'tmp');
  const names = readdirSync(folder).filter((name) => name.startsWith(`${pid}-`));
  return names.map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0);
}

/** Bytes that have arrived of each upload. */
function unfinishedUploads(): number[] {
  const folder = objectPath(scene.stack, UPLOADS, 'multipart');
  const below = (path: string) => exists(() => readdirSync(path)) ?? [];
  const uploads = below(folder).flatMap((object) =>
    below(join(folder, object)).map((upload) => join(folder, object, upload)),
  );
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return uploads.map((upload) =>
    below(upload).reduce((sum, part) => sum + sizeOf(join(upload, part)), 0),
  );
}

/** Waits until a process has finished all its objects. Says what it was doing if it does not. */
async function untilNothingIsUnfinished(pid: number): Promise<void> {
  const sizes = new Set<number>();
  const isDone = (): boolean => {
    const unfinished = unfinishedOf(pid);
    for (const size of unfinished) sizes.add(size);
    return unfinished.length === 0;
  };
  await until(isDone, WAIT_MS, 'the end of its own file').catch((error: unknown) => {
    const state = isGone(pid) ? 'is gone' : 'is there';
    const log = scene.stack.logOf('worker').slice(-LOG_CHARACTERS);
    const seen = [...sizes].join(', ');
    throw new Error(`worker ${pid} ${state}; sizes: ${seen}; its log:\n${log}`, { cause: error });
  });
}

/** Whether the second worker writes a result file, while the first one is frozen at that. */
function hasBegun(second: SecondWorker): boolean {
  if (STORE === 's3') return unfinishedUploads().length > 1;
  return unfinishedOf(second.pid() ?? 0).length > 0;
}

/** Answers so large that making the result file takes a while. */
const CONTENT = 'y'.repeat(100_000);

function answerLargely(): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: CONTENT } }];
  scene.near.judge = ({ requestId }) => {
    return { status: 200, body: JSON.stringify({ id: requestId, model: 'm', choices }) };
  };
}

/** Freezes the worker while it makes the result file of a batch of so many lines. */
function freezeAtResults(lines: number): Promise<{ pid: number; id: string }> {
  answerLargely();
  return freezeAt(scene, {
    text: chatLines(lines),
    isNow: (worker, batch) =>
      hasObject(scene.stack, manifestKey(batch.id)) &&
      unfinishedOf(worker).some((size) => size > CONTENT.length),
    isOver: (batchId) => hasResultFile(batchId),
  });
}

/** Who finalizes: the workflow if it was given a small batch back, the last chunk of any other. */
const FINALIZERS = [
  { by: 'by its workflow', lines: 400, status: 'finalizing', sealsAgain: false },
  { by: 'by its last chunk', lines: 700, status: 'in_progress', sealsAgain: true },
];

describe.each(FINALIZERS)('a finalization $by', ({ lines, status }) => {
  it(
    'whose worker is killed is made up for, and no line is sent again',
    async () => {
      const { stack, near, far } = scene;
      const { pid, id } = await freezeAtResults(lines);
      expect((await stack.client.batches.retrieve(id)).status).toBe(status);
      process.kill(pid, 'SIGKILL');
      await expectCompleted(stack.client, id, { lines, timeoutMs: WAIT_MS });
      expect(near.seen.length + far.seen.length).toBe(lines);
    },
    TEST_MS,
  );
});

describe.each(FINALIZERS)(
  'a finalization $by whose worker is frozen beyond its heartbeat timeout',
  ({ lines, sealsAgain }) => {
    it.each([
      [
        'after another worker has delivered',
        (id: string): Promise<unknown> => untilTerminal(scene.stack.client, id, WAIT_MS),
      ],
      [
        'while another worker delivers',
        (_id: string, second: SecondWorker): Promise<unknown> =>
          until(() => hasBegun(second), WAIT_MS, 'the other one', 1),
      ],
    ])(
      'changes no delivered file and leaves nothing behind when it wakes up %s',
      async (_, whenDelivered) => {
        const { stack, near, far } = scene;
        const { pid, id } = await freezeAtResults(lines);
        const second = await scene.startSecond();
        await whenDelivered(id, second);
        const isDelivered = hasResultFile(id);
        const before = everyObject();

        process.kill(pid, 'SIGCONT');
        const delivered = await untilTerminal(stack.client, id, WAIT_MS);
        await untilNothingIsUnfinished(pid);
        await replaceWorker(stack, pid);
        expect(await stack.client.batches.retrieve(id)).toEqual(delivered);
        const after = everyObject();
        expect(after).toMatchObject(before);
        const added = Object.keys(after).filter((key) => !(key in before));
        // Attempts of a chunk that reach it late seal its range again. No manifest names these seals.
        const seals = objectPath(stack, 'batches', id, 'seals');
        const others = added.filter((key) => !(sealsAgain && key.startsWith(seals)));
        expect(others.length).toBeLessThanOrEqual(isDelivered ? 0 : 1);
        expect(unfinishedOf(pid)).toEqual([]);
        await expectCompleted(stack.client, id, { lines, timeoutMs: WAIT_MS });
        expect(near.seen.length + far.seen.length).toBe(lines);
      },
      TEST_MS,
    );
  },
);

/** How many answers to these requests are not in the journal of their batch. */
function answersNotWritten(batchId: string, seen: readonly Seen[]): number {
  const journalled = new Set(customIdsIn(objectPath(scene.stack, 'batches', batchId, 'journal')));
  const customId = ({ body }: Seen) => `c-${/question (\d+)/.exec(body)?.[1]}`;
  return seen.filter((one) => one.answered && !journalled.has(customId(one))).length;
}

describe('a chunk whose worker is frozen beyond its heartbeat timeout', () => {
  it(
    'sends nothing after it wakes up until PostgreSQL answers; no line is delivered twice',
    async () => {
      const { stack, near, far } = scene;
      const LINES = 3_000;
      near.latencyMs = far.latencyMs = 300;
      const second = await scene.startSecond();
      const { id } = await submit(stack.client, chatLines(LINES));
      const bothAtWork = (): boolean =>
        far.seen.length > 2 * IN_FLIGHT && near.seen.length > 2 * IN_FLIGHT;
      await until(bothAtWork, WAIT_MS, 'both workers at work');
      const pid = second.pid() ?? 0;
      process.kill(pid, 'SIGSTOP');
      const unwritten = answersNotWritten(id, far.seen);
      const lost = (): boolean => {
        const sent = new Set(far.seen.map(({ requestId }) => requestId));
        return near.seen.some(({ requestId }) => sent.has(requestId));
      };
      await until(lost, WAIT_MS, 'lines of the frozen worker at the other one');

      await second.links.postgres.become('hang');
      const sentBefore = far.seen.length;
      process.kill(pid, 'SIGCONT');
      // More lines than the other worker holds: the woken one must give back what it holds or is given.
      const goal = near.seen.length + LINES / 3;
      await until(() => near.seen.length >= goal, WAIT_MS, 'the other one going on');
      expect((await stack.client.batches.retrieve(id)).status).toBe('in_progress');
      expect(far.seen).toHaveLength(sentBefore);
      await second.links.postgres.become('pass');
      await until(() => far.seen.length > sentBefore, WAIT_MS, 'its requests once it is answered');

      await expectCompleted(stack.client, id, { lines: LINES, timeoutMs: WAIT_MS });
      const sent = [...near.seen, ...far.seen].map(({ requestId }) => requestId);
      expect(new Set(sent).size).toBe(LINES);
      // Those in flight at the freeze, answers that it had not written yet, and those that began while
      // PostgreSQL was silent.
      expect(sent.length - LINES).toBeLessThanOrEqual(2 * IN_FLIGHT + unwritten);
    },
    TEST_MS,
  );
});

describe('result files that were begun while the last answer is awaited', () => {
  const lines = 700;

  function freezeAtDraft(): Promise<{ pid: number; id: string }> {
    answerLargely();
    scene.near.hold = (seen) => seen === scene.near.seen[lines - 1];
    return freezeAt(scene, {
      text: chatLines(lines),
      isNow: (worker, batch) =>
        !hasObject(scene.stack, manifestKey(batch.id)) &&
        unfinishedOf(worker).some((size) => size > CONTENT.length),
      isOver: (batchId) => hasResultFile(batchId),
    });
  }

  it(
    'are made anew when their worker is killed',
    async () => {
      const { stack, near } = scene;
      const { pid, id } = await freezeAtDraft();
      const answered = near.seen.filter((seen) => seen.answered).length;
      const lost = answered - journalledAnswers(stack, id);
      process.kill(pid, 'SIGKILL');
      near.hold = () => false;
      await expectCompleted(stack.client, id, { lines, timeoutMs: WAIT_MS });
      expect(near.seen.length).toBeLessThanOrEqual(lines + IN_FLIGHT + lost);
    },
    TEST_MS,
  );

  it(
    'are given up when their worker wakes up after another one has delivered',
    async () => {
      const { stack, near } = scene;
      const { pid, id } = await freezeAtDraft();
      await scene.startSecond();
      const delivered = await untilTerminal(stack.client, id, WAIT_MS);
      const result = await stack.client.files.content(delivered.output_file_id ?? '');
      const text = await result.text();
      process.kill(pid, 'SIGCONT');
      near.hold = () => false;
      await until(() => unfinishedOf(pid).length === 0, WAIT_MS, 'the end of its own file');
      await replaceWorker(stack, pid);
      expect(await stack.client.batches.retrieve(id)).toEqual(delivered);
      const after = await stack.client.files.content(delivered.output_file_id ?? '');
      expect(await after.text()).toBe(text);
      await expectCompleted(stack.client, id, { lines, timeoutMs: WAIT_MS });
    },
    TEST_MS,
  );
});
