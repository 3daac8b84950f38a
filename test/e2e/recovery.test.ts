import { existsSync, mkdirSync, rmdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type OpenAI from 'openai';
import { manifestKey } from '../../core/names/object-names';
import { journalledAnswers } from '../support/journal-files';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
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
import { itOnFilesystem, STORE } from '../support/variant';

/**
 * What happens to every kind of batch that a dead worker leaves behind
 * (docs/design/ends.md#restart): one batch for each status and its special cases.
 */
const LINES = 80;
/** How many answers a held batch has, and how many of its requests are in flight. */
const ANSWERED = 20;
const IN_FLIGHT = 10;
const DAY_SEC = 24 * 3600;
/** Each batch names a model of its own, which identifies its requests. */
const BATCHES = ['ended', 'written', 'unwritable', 'silent', 'begun', 'late', 'unwanted'] as const;
type Name = (typeof BATCHES)[number] | 'fresh';
const HELD = ['begun', 'late', 'unwanted'] as const;

let backend: RecordingBackend;
let stack: TestStack;
const ids = {} as Record<Name, string>;
/** Requests of each batch when all processes were dead. */
const sentBefore = {} as Record<Name, number>;
let ended: OpenAI.Batches.Batch;
/** The batch whose manifest is about to be blocked. */
let blocking: Name | null = null;
const leftovers = { temporary: '', unknown: '' };

const sent = (name: Name) => backend.seen.filter(({ body }) => body.includes(`"${name}"`));

beforeAll(async () => {
  backend = await startRecordingBackend(20);
  backend.hold = (request) => {
    if (request.body.includes('"silent"')) return true;
    // They must not be finalized before their manifest is blocked.
    if (blocking !== null && request.body.includes(`"${blocking}"`)) return true;
    return HELD.some((name) => sent(name).indexOf(request) >= ANSWERED);
  };
  stack = await startStack({
    config: {
      global_inference_gateway: { url: backend.url, request_timeout: '150s' },
      batch: { cancel_grace: '1s', finalize_window: '1s' },
      concurrency: { per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: '8s' },
    },
  });
  await leaveEverything();
  backend.latencyMs = 5;
  backend.hold = () => false;
  stack = await stack.restart();
}, 3 * STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);

async function start(name: Name, window = '24h'): Promise<void> {
  ids[name] = (
    await submit(
      stack.client,
      chatLines(LINES, () => name),
      window,
    )
  ).id;
}

async function statusOf(name: Name): Promise<string> {
  return (await stack.client.batches.retrieve(ids[name])).status;
}

/** Brings one batch into every state, then kills all processes. */
async function leaveEverything(): Promise<void> {
  await start('ended');
  ended = await untilTerminal(stack.client, ids.ended);
  for (const name of ['written', 'unwritable'] as const) {
    blocking = name;
    await start(name);
    await until(() => sent(name).length > 0, 20_000, 'a first request');
    mkdirSync(stack.objectPath(manifestKey(ids[name])));
    blocking = null;
    await until(async () => (await statusOf(name)) === 'finalizing', 30_000, 'finalizing');
  }
  for (const name of ['silent', 'begun', 'unwanted'] as const) await start(name);
  for (const name of ['begun', 'unwanted'] as const) {
    await until(() => isHeld(name), 30_000, `answers of ${name}`);
  }
  await until(() => sent('silent').length > 0, 30_000, 'a request that nobody answers');
  const lateMs = await stopWithin();
  await stack.client.batches.cancel(ids.unwanted);
  await start('fresh');
  await until(() => Date.now() > lateMs, 60_000, 'the end of its window', 100);
  signalWorkers('SIGKILL');
  await stack.stop();
  rmdirSync(stack.objectPath(manifestKey(ids.written)));
  leaveScratch();
  for (const name of [...BATCHES, 'fresh'] as const) sentBefore[name] = sent(name).length;
}

/** Whether its answers are in the journal and as many requests as allowed are in flight. */
function isHeld(name: (typeof HELD)[number]): boolean {
  const isFull = sent(name).length === ANSWERED + IN_FLIGHT;
  return isFull && journalledAnswers(stack, ids[name]) === ANSWERED;
}

function signalWorkers(signal: NodeJS.Signals): void {
  for (const pid of stack.pidsOf('worker')) process.kill(pid, signal);
}

/**
 * Stops the workers within the window of `late` and returns the end of that window, Unix ms. If the machine
 * is too busy for the window, it tries again with a longer one.
 */
async function stopWithin(): Promise<number> {
  for (let windowSec = 4; ; windowSec *= 2) {
    await start('late', `${windowSec}s`);
    const { expires_at: expiresAt } = await stack.client.batches.retrieve(ids.late);
    const endMs = (expiresAt ?? 0) * 1000;
    await until(() => isHeld('late') || Date.now() >= endMs, 30_000, 'answers of late');
    signalWorkers('SIGSTOP');
    if (Date.now() < endMs) return endMs;
    signalWorkers('SIGCONT');
    await untilTerminal(stack.client, ids.late);
    backend.seen.splice(0, Infinity, ...backend.seen.filter((one) => !sent('late').includes(one)));
  }
}

function leaveScratch(): void {
  if (STORE === 'filesystem') {
    leftovers.temporary = join(stack.dataDir, 'objects', 'tmp', '1-0123456789abcdef');
    writeFileSync(leftovers.temporary, 'half an object');
    const longAgo = Date.now() / 1000 - 2 * DAY_SEC;
    utimesSync(leftovers.temporary, longAgo, longAgo);
  }
  leftovers.unknown = stack.objectPath('batches', `batch_${'0'.repeat(32)}`);
  mkdirSync(leftovers.unknown);
  writeFileSync(join(leftovers.unknown, 'model_map.json'), '{');
}

async function endOf(name: Name) {
  const batch = await untilTerminal(stack.client, ids[name]);
  const output = await resultLines(stack.client, batch.output_file_id);
  const errors = await resultLines(stack.client, batch.error_file_id);
  return { batch, output, errors, codes: [...new Set(errors.map(({ error }) => error?.code))] };
}

async function expectCompleted(name: Name): Promise<void> {
  const { batch, output } = await endOf(name);
  expect(batch).toMatchObject({
    ...{ status: 'completed', error_file_id: null, errors: null },
    request_counts: { total: LINES, completed: LINES, failed: 0 },
  });
  expect(output.map((line) => line.custom_id)).toEqual(
    Array.from({ length: LINES }, (_, i) => `c-${i}`),
  );
}

/** Stopped with a part of its answers: every line once, the rest under its code. */
async function expectPart(name: Name, status: 'cancelled' | 'expired'): Promise<void> {
  const { batch, output, errors, codes } = await endOf(name);
  // First, because it tells why there are more answers.
  const sentAfter = sent(name).slice(sentBefore[name]);
  const log = sentAfter.length === 0 ? '' : stack.logOf('worker');
  expect({ sentAfter, log }).toEqual({ sentAfter: [], log: '' });
  expect(batch).toMatchObject({
    ...{ status, errors: null },
    request_counts: { total: LINES, completed: output.length, failed: 0 },
  });
  expect(output).toHaveLength(ANSWERED);
  expect(codes).toEqual([`batch_${status}`]);
  const found = [...output, ...errors].map((line) => line.custom_id);
  expect(found.sort()).toEqual(Array.from({ length: LINES }, (_, i) => `c-${i}`).sort());
}

describe('a batch that a dead worker left', () => {
  it('in progress without any answer is resumed and completes', () => expectCompleted('silent'));

  it('in progress with answers is resumed, and answered lines are not sent again', async () => {
    await expectCompleted('begun');
    expect(sent('begun')).toHaveLength(LINES + IN_FLIGHT);
    expect(sentBefore.begun).toBe(ANSWERED + IN_FLIGHT);
  });

  it('in progress past its window expires with its answers and sends nothing more', () =>
    expectPart('late', 'expired'));

  it('while finalizing is finalized and sends nothing more', async () => {
    await expectCompleted('written');
    expect(sent('written')).toHaveLength(LINES);
  });

  it('while finalizing, with files that cannot be written, completes once they can be', async () => {
    expect(await statusOf('unwritable')).toBe('finalizing');
    rmdirSync(stack.objectPath(manifestKey(ids.unwritable)));
    await expectCompleted('unwritable');
    expect(sent('unwritable')).toHaveLength(LINES);
  });

  it('while cancelling ends cancelled with its answers and sends nothing more', () =>
    expectPart('unwanted', 'cancelled'));

  it('while validating is resumed and completes, with each line sent once', async () => {
    await expectCompleted('fresh');
    expect(sent('fresh')).toHaveLength(LINES);
  });

  it('after its end stays as it is', async () => {
    expect(await stack.client.batches.retrieve(ids.ended)).toEqual(ended);
    expect(sent('ended')).toHaveLength(LINES);
  });

  it('but the database does not know is left alone and not counted', () => {
    expect(existsSync(leftovers.unknown)).toBe(true);
  });

  itOnFilesystem(
    'half-written leaves objects that are removed after a day',
    'there they are uploads, which test/storage/objects/s3 covers',
    () => expect(existsSync(leftovers.temporary)).toBe(false),
  );

  it('is counted once by each worker, under the status in which it was found; one that waited is not', async () => {
    const expected = [3, 2, 1];
    const counted = await until(
      async () => {
        const lines = await stack.metric('worker', 'batch_startup_recovery_total{');
        // Of two workers that start at the same moment each counts what it finds.
        const byStatus = ['in_progress', 'finalizing', 'cancelling'].map((status) =>
          most(lines.filter((line) => line.includes(`status="${status}"`))),
        );
        return byStatus.every((count, i) => count >= (expected[i] ?? 0))
          ? { lines, byStatus }
          : null;
      },
      20_000,
      'six batches to be counted',
    );
    expect(counted.byStatus).toEqual(expected);
    const known = /status="(in_progress|finalizing|cancelling)",action="resumed"/;
    expect(counted.lines.filter((line) => !known.test(line))).toEqual([]);
  });
});

/** The highest value of these lines of metrics pages, 0 without any. */
function most(lines: readonly string[]): number {
  return Math.max(0, ...lines.map((line) => Number(line.split(' ').at(-1))));
}
