import { crc32 } from 'node:zlib';
import type { ExecuteChunkResult } from '../../../activities/contract';
import { encodeRetryFrame, retryHeader } from '../../../core/journal/frame';
import type { Answer } from '../../inference/local-server';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { BATCH_ID, chunkWorld } from './chunk-world';
import { nameOf, ok, status } from './model-server';

let world: ChunkWorld;
let running: Promise<ExecuteChunkResult> | null = null;

afterEach(async () => {
  running = null;
  await world.close();
});

async function open(
  lines: number,
  answer: Answer,
  settings: Record<string, unknown> = {},
): Promise<ChunkWorld> {
  return (world = await chunkWorld(lines, answer, settings));
}

it('bounds the lines in backoff and sends no fresh line meanwhile', async () => {
  const later = status(500, { 'retry-after': '60' });
  const { run, lease, tries, drain, retries } = await open(20, later, {
    concurrency: { per_model: 2 },
  });
  let asked = 0;
  lease.maySend = () => {
    asked++;
    return true;
  };
  running = run();
  await until(() => tries() >= 4, 5_000, 'twice the permits of the model to be tried');
  const askedThen = asked;
  await until(() => asked >= askedThen + 6, 5_000, 'the chunk to look again and again');
  // Requests in flight when the limit was reached may end up in backoff as well.
  expect(tries()).toBeLessThanOrEqual(6);
  drain.abort();
  expect(await running).toMatchObject({ next: 0, left: 'drain' });
  expect(await retries()).toHaveLength(tries());
});

it('does not count a probe that found the gateway away as a try', async () => {
  // Away for six probes, then busy for two of the line's three tries.
  const away = status(503);
  const busy = status(500);
  let seen = 0;
  const world = await open(1, (request, response, socket) => {
    seen++;
    const answer = seen <= 6 ? away : seen <= 8 ? busy : ok;
    answer(request, response, socket);
  });
  const { breaker } = world.deps.registry.route('m') ?? {};
  for (let i = 0; i < 5; i++) {
    const nowMs = Date.now() - (i === 0 ? 20_000 : 1_000);
    breaker?.onFailure({ lineId: `other-${i}`, kind: 503, nowMs });
  }
  expect(breaker?.state).toBe('open');
  running = world.run();
  expect(await running).toMatchObject({ next: 1, completed: 1, failed: 0 });
  expect(seen).toBe(9);
});

it('gives each line its own tries, neither fewer nor more', async () => {
  const tries = new Map<string, number>();
  const { run } = await open(12, (request, response, socket) => {
    const name = nameOf(request);
    const nth = (tries.get(name) ?? 0) + 1;
    tries.set(name, nth);
    // Line n succeeds at its try n + 1; there are three.
    (nth > Number(name.slice(1)) ? ok : status(500))(request, response, socket);
  });
  running = run();
  expect(await running).toMatchObject({ next: 12, completed: 3, failed: 9 });
  const byLine = Array.from({ length: 12 }, (_, i) => tries.get(`l${i}`));
  expect(byLine).toEqual([1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
});

it('takes over the tries of an earlier attempt', async () => {
  const { run, journal, offsetOf, seen } = await open(1, status(500));
  const writer = journal.openWriter({ batchId: BATCH_ID, safeModel: 'm' }, { from: 0, to: 1 });
  const retry = { offset: offsetOf(0), tries: 2, notBeforeMs: 0 };
  writer.append(retryHeader(retry), encodeRetryFrame(retry, crc32));
  await writer.close();
  running = run();
  expect(await running).toMatchObject({ next: 1, failed: 1 });
  expect(seen()).toHaveLength(1);
});

it('takes over the refusals of an earlier attempt, so a line has twenty in total', async () => {
  const { run, journal, offsetOf, seen } = await open(1, status(429), {
    concurrency: { per_model: 16 },
  });
  const writer = journal.openWriter({ batchId: BATCH_ID, safeModel: 'm' }, { from: 0, to: 1 });
  const retry = { offset: offsetOf(0), tries: 0, refusals: 20, notBeforeMs: 0 };
  writer.append(retryHeader(retry), encodeRetryFrame(retry, crc32));
  await writer.close();
  running = run();
  expect(await running).toMatchObject({ next: 1, failed: 1 });
  // The refusals are used up, so only its three tries are left.
  expect(seen()).toHaveLength(3);
});
