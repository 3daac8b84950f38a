import { existsSync } from 'node:fs';
import { isGone } from '../support/process-state';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack, submit, untilTerminal } from '../support/stack';
import { until } from '../support/until';
import type { SecondWorker } from './round/second-worker';
import { startSecondWorker } from './round/second-worker';

/** The most requests that each worker has in flight. */
export const IN_FLIGHT = 20;
/** The longest wait for one condition. */
export const WAIT_MS = 90_000;
/** A moment of milliseconds may be missed; then another batch is tried. */
const TRIES = 5;

/** A stack whose worker a test freezes, and a second worker that takes over. */
export interface TwoWorkers {
  readonly stack: TestStack;
  /** The model server of the stack's own worker. */
  readonly near: RecordingBackend;
  /** The model server of the second worker. */
  readonly far: RecordingBackend;
  /** Starts the second worker, which ends with the test. */
  startSecond(): Promise<SecondWorker>;
}

/** Starts the stack before the tests of a file and stops it after them. */
export function useTwoWorkers(): TwoWorkers {
  const scene = {} as { stack: TestStack; near: RecordingBackend; far: RecordingBackend };
  let second: SecondWorker | null = null;
  beforeAll(async () => {
    scene.near = await startRecordingBackend();
    scene.far = await startRecordingBackend();
    const gateway = { url: scene.near.url, request_timeout: '20s', initial_backoff: '50ms' };
    scene.stack = await startStack({
      config: {
        global_inference_gateway: gateway,
        concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
        worker: { heartbeat_timeout: '3s' },
      },
      // The tests add the second worker.
      processes: 1,
    });
  }, STACK_START_MS);
  afterAll(async () => {
    await scene.stack?.stop();
    scene.stack?.remove();
    await scene.near?.close();
    await scene.far?.close();
  }, 60_000);
  beforeEach(() => {
    for (const backend of [scene.near, scene.far]) {
      Object.assign(backend, { latencyMs: 0, judge: () => null, hold: () => false });
      backend.seen.length = 0;
    }
  });
  afterEach(async () => {
    await second?.stop();
    second = null;
  }, 60_000);
  return Object.assign(scene, {
    startSecond: async () => (second = await startSecondWorker(scene.stack, scene.far.url)),
  });
}

/** Path of an object in the store of a stack. */
export function objectPath(stack: TestStack, ...key: string[]): string {
  return stack.objectPath(...key);
}

/** Whether an object exists. */
export function hasObject(stack: TestStack, ...key: string[]): boolean {
  return existsSync(objectPath(stack, ...key));
}

/** A moment in the life of a batch at which its worker is frozen. */
export interface Moment {
  readonly text: string;
  /** Whether the worker is in the middle of it. */
  isNow(pid: number, batch: { id: string; input: string }): boolean;
  /** Whether it has passed. */
  isOver(batchId: string): boolean;
}

/** Freezes the stack's worker, the only one that runs, at a moment. Returns its pid and the batch. */
export async function freezeAt(
  { stack, near }: TwoWorkers,
  moment: Moment,
): Promise<{ pid: number; id: string }> {
  for (let tries = 0; tries < TRIES; tries++) {
    const pid = await until(() => stack.pidNow('worker'), WAIT_MS, 'a worker');
    const { id, input_file_id: input } = await submit(stack.client, moment.text);
    const isDue = (): boolean => moment.isNow(pid, { id, input }) || moment.isOver(id);
    await until(isDue, WAIT_MS, 'the moment', 1);
    process.kill(pid, 'SIGSTOP');
    if (!moment.isOver(id)) return { pid, id };
    process.kill(pid, 'SIGCONT');
    await untilTerminal(stack.client, id, WAIT_MS);
    near.seen.length = 0;
  }
  throw new Error(`the moment was missed ${TRIES} times`);
}

/** Ends a worker that was frozen, with all its late attempts, and waits for the next one. */
export async function replaceWorker(stack: TestStack, pid: number): Promise<void> {
  process.kill(pid, 'SIGTERM');
  await until(() => isGone(pid), WAIT_MS, 'the end of the worker that was frozen');
  const isNew = () => stack.pidNow('worker') !== null && stack.pidNow('worker') !== pid;
  await until(isNew, WAIT_MS, 'a new worker');
}
