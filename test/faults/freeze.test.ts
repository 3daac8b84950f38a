import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { resultFileId } from '../../core/names/ids';
import { manifestKey, modelMapKey } from '../../core/names/object-names';
import type { SecondWorker } from './round/second-worker';
import { startSecondWorker } from './round/second-worker';
import { isGone } from '../support/process-state';
import { expectCompleted } from './expect-completed';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, submit, untilTerminal } from '../support/stack';
import { until } from '../support/until';

const IN_FLIGHT = 20;
const TEST_MS = 240_000;
const WAIT_MS = 90_000;
/**
 * Attempts that Temporal handed to the frozen worker begin when that wakes up; they hear that they come
 * late, and leave the range to the attempt that has it by then.
 */
const MAY_RESEND = 0;
/** A moment of milliseconds may be missed; then another batch is tried. */
const TRIES = 5;

/** What the stack's own worker sends to, and what the second worker sends to. */
let near: RecordingBackend;
let far: RecordingBackend;
let stack: TestStack;
let second: SecondWorker | null = null;

beforeAll(async () => {
  [near, far] = [await startRecordingBackend(), await startRecordingBackend()];
  stack = await startStack({
    config: {
      global_inference_gateway: { url: near.url, request_timeout: '20s', initial_backoff: '50ms' },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: '3s' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await second?.stop();
  await stack?.stop();
  stack?.remove();
  await near?.close();
  await far?.close();
}, 60_000);
beforeEach(() => {
  for (const backend of [near, far]) {
    Object.assign(backend, { latencyMs: 0, judge: () => null });
    backend.seen.length = 0;
  }
});
afterEach(async () => {
  await second?.stop();
  second = null;
}, 60_000);

const objects = (...path: string[]): string => join(stack.dataDir, 'objects', 'objects', ...path);

/** Every object with a digest of its bytes. */
function everyObject(): Record<string, string> {
  const found = readdirSync(objects(), { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    found
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path, createHash('sha256').update(readFileSync(path)).digest('hex')]),
  );
}

function resultFileOf(batchId: string): boolean {
  const id = resultFileId(batchId, 'output');
  return readdirSync(objects('files')).some((tenant) => existsSync(objects('files', tenant, id)));
}

/** Objects that a process is still writing, and their sizes. */
function unfinishedOf(pid: number): number[] {
  const folder = join(stack.dataDir, 'objects', 'tmp');
  const names = readdirSync(folder).filter((name) => name.startsWith(`${pid}-`));
  return names.map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0);
}

function hasOpen(pid: number, name: string): boolean {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).some((fd) => {
    try {
      return readlinkSync(join(folder, fd)).endsWith(name);
    } catch {
      return false;
    }
  });
}

/** Folders of plans, each with the number of its plans. */
function plansOf(batchId: string): Map<string, number> {
  const folder = objects('batches', batchId, 'plans');
  if (!existsSync(folder)) return new Map();
  return new Map(
    readdirSync(folder).map((nonce) => [nonce, readdirSync(join(folder, nonce)).length]),
  );
}

interface Moment {
  readonly text: string;
  /** Whether the worker is in the middle of it. */
  isThere(pid: number, batch: { id: string; input: string }): boolean;
  /** Whether it has gone on beyond. */
  isOver(batchId: string): boolean;
}

/** Freezes the stack's worker, the only one by then, in the middle of something; its pid and the batch. */
async function freezeAt(moment: Moment): Promise<{ pid: number; id: string }> {
  for (let tries = 0; tries < TRIES; tries++) {
    const pid = await until(() => stack.pidNow('worker'), WAIT_MS, 'a worker');
    const { id, input_file_id: input } = await submit(stack.client, moment.text);
    const isDue = (): boolean => moment.isThere(pid, { id, input }) || moment.isOver(id);
    await until(isDue, WAIT_MS, 'the moment', 1);
    process.kill(pid, 'SIGSTOP');
    if (!moment.isOver(id)) return { pid, id };
    process.kill(pid, 'SIGCONT');
    await untilTerminal(stack.client, id, WAIT_MS);
    near.seen.length = 0;
  }
  throw new Error(`the moment was missed ${TRIES} times`);
}

/** Tells a process that goes again to end, and waits: none of its attempts runs any more. */
async function untilAllEnded(pid: number): Promise<void> {
  process.kill(pid, 'SIGTERM');
  await until(() => isGone(pid), WAIT_MS, 'the end of the worker that was frozen');
  await until(
    () => stack.pidNow('worker') !== null && stack.pidNow('worker') !== pid,
    WAIT_MS,
    'a new worker',
  );
}

/** Long lines: their bytes are read for longer than it takes to be seen at it. */
function longLines(count: number, bytes: number): string {
  const pad = 'x'.repeat(bytes);
  return chatLines(count).replaceAll('question', pad);
}

const isPlanned = (id: string): boolean => existsSync(objects(modelMapKey(id)));
const MODELS = 120;
const LONG = 60;
const INGESTIONS: [string, Moment & { lines: number }][] = [
  [
    'while it reads the input',
    {
      ...{ text: longLines(LONG, 1024 * 1024), lines: LONG },
      isThere: (pid, { input }) => hasOpen(pid, input),
      isOver: isPlanned,
    },
  ],
  [
    'between its first plan and the map of models',
    {
      ...{ text: chatLines(MODELS, (i) => `m-${i}`), lines: MODELS },
      isThere: (_, { id }) => [...plansOf(id).values()].some((plans) => plans > 0),
      isOver: isPlanned,
    },
  ],
];

describe('a worker that is frozen beyond its heartbeat during an ingestion', () => {
  it.each(INGESTIONS)(
    '%s: another one plans the batch, and nothing of that plan changes when it wakes up',
    async (_, moment) => {
      far.latencyMs = near.latencyMs = 500;
      const { pid, id } = await freezeAt(moment);
      const [started] = [...plansOf(id).keys()];
      second = await startSecondWorker(stack, far.url);
      await until(() => far.seen.length > 0, WAIT_MS, 'requests from the other worker');
      const map = readFileSync(objects(modelMapKey(id)), 'utf8');
      const { nonce } = JSON.parse(map) as { nonce: string };
      expect(nonce).not.toBe(started);
      expect((await stack.client.batches.retrieve(id)).status).toBe('in_progress');

      process.kill(pid, 'SIGCONT');
      if (started !== undefined) {
        const isWhole = (): boolean => plansOf(id).get(started) === MODELS;
        await until(isWhole, WAIT_MS, 'the end of the plans that it had begun');
      }
      await expectCompleted(stack.client, id, { lines: moment.lines, timeoutMs: WAIT_MS });
      await untilAllEnded(pid);
      expect(readFileSync(objects(modelMapKey(id)), 'utf8')).toBe(map);
      const sent = [...near.seen, ...far.seen].map(({ requestId }) => requestId);
      expect(new Set(sent).size).toBe(moment.lines);
      expect(sent.length - moment.lines).toBeLessThanOrEqual(MAY_RESEND);
    },
    TEST_MS,
  );
});

describe('a worker that is frozen beyond its heartbeat during a finalization', () => {
  it.each([
    ['after another one has delivered', (id: string) => untilTerminal(stack.client, id, WAIT_MS)],
    [
      'while another one delivers',
      (): Promise<unknown> =>
        until(() => unfinishedOf(second?.pid() ?? 0).length > 0, WAIT_MS, 'the other one', 1),
    ],
  ])(
    'and wakes up %s: no delivered file changes, nothing is left over',
    async (_, whenDelivered) => {
      const LINES = 400;
      const content = 'y'.repeat(100_000);
      near.judge = ({ requestId }) => {
        const choices = [{ index: 0, message: { role: 'assistant', content } }];
        return { status: 200, body: JSON.stringify({ id: requestId, model: 'm', choices }) };
      };
      const { pid, id } = await freezeAt({
        text: chatLines(LINES),
        isThere: (worker, batch) =>
          existsSync(objects(manifestKey(batch.id))) &&
          unfinishedOf(worker).some((size) => size > content.length),
        isOver: (batchId) => resultFileOf(batchId),
      });
      second = await startSecondWorker(stack, far.url);
      await whenDelivered(id);
      const isDelivered = resultFileOf(id);
      const before = everyObject();

      process.kill(pid, 'SIGCONT');
      const delivered = await untilTerminal(stack.client, id, WAIT_MS);
      await until(() => unfinishedOf(pid).length === 0, WAIT_MS, 'the end of its own file');
      await untilAllEnded(pid);
      expect(await stack.client.batches.retrieve(id)).toEqual(delivered);
      const after = everyObject();
      if (isDelivered) expect(after).toEqual(before);
      expect(Object.keys(after).filter((key) => !(key in before)).length).toBeLessThanOrEqual(1);
      expect(after).toMatchObject(before);
      expect(unfinishedOf(pid)).toEqual([]);
      await expectCompleted(stack.client, id, { lines: LINES, timeoutMs: WAIT_MS });
      expect(near.seen.length + far.seen.length).toBe(LINES);
    },
    TEST_MS,
  );
});

describe('a worker that is frozen beyond its heartbeat during a chunk', () => {
  it(
    'sends nothing when it wakes up before Postgres has answered it; no line is doubled',
    async () => {
      const LINES = 3_000;
      near.latencyMs = far.latencyMs = 300;
      second = await startSecondWorker(stack, far.url);
      const { id } = await submit(stack.client, chatLines(LINES));
      const bothAtWork = (): boolean =>
        far.seen.length > 2 * IN_FLIGHT && near.seen.length > 2 * IN_FLIGHT;
      await until(bothAtWork, WAIT_MS, 'both workers at work');
      const pid = second.pid() ?? 0;
      process.kill(pid, 'SIGSTOP');
      const lost = (): boolean => {
        const sent = new Set(far.seen.map(({ requestId }) => requestId));
        return near.seen.some(({ requestId }) => sent.has(requestId));
      };
      await until(lost, WAIT_MS, 'lines of the frozen worker at the other one');

      await second.links.postgres.become('hang');
      const sentBefore = far.seen.length;
      process.kill(pid, 'SIGCONT');
      // More than the other one holds by then: what the woken one holds or is given it must give back.
      const goal = near.seen.length + LINES / 3;
      await until(() => near.seen.length >= goal, WAIT_MS, 'the other one going on');
      expect((await stack.client.batches.retrieve(id)).status).toBe('in_progress');
      expect(far.seen).toHaveLength(sentBefore);
      await second.links.postgres.become('pass');
      await until(() => far.seen.length > sentBefore, WAIT_MS, 'its requests once it is answered');

      await expectCompleted(stack.client, id, { lines: LINES, timeoutMs: WAIT_MS });
      const sent = [...near.seen, ...far.seen].map(({ requestId }) => requestId);
      expect(new Set(sent).size).toBe(LINES);
      // In flight at the freeze, and what began while Postgres was silent.
      expect(sent.length - LINES).toBeLessThanOrEqual(2 * IN_FLIGHT);
    },
    TEST_MS,
  );
});
