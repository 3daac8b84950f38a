import { MockActivityEnvironment } from '@temporalio/testing';
import { FRAME_KIND } from '../../../core/journal/frame';
import type { Answer } from '../../inference/local-server';
import type { ChunkWorld } from './chunk-world';
import { BATCH_ID, chunkWorld } from './chunk-world';

const GOOD = '{"model":"m","choices":[]}';
const RETRIES = { max_retries: 4, initial_backoff: '30ms', max_backoff: '60s' };
let world: ChunkWorld;
afterEach(() => world.close());

/** A server that answers `slots` requests at once, each in `tookMs`, and refuses the rest. */
function busyServer(slots: number, tookMs: number) {
  const seen = { open: 0, refused: 0, firstMs: 0, lastMs: 0 };
  const answer: Answer = (_request, response) => {
    if (seen.open >= slots) {
      seen.refused++;
      response.writeHead(429).end('{"error":{"message":"busy"}}');
      return;
    }
    seen.firstMs ||= performance.now();
    seen.open++;
    setTimeout(() => {
      seen.open--;
      seen.lastMs = performance.now();
      response.end(GOOD);
    }, tookMs);
  };
  return { seen, answer };
}

const nameOf = (body: Buffer): string => (JSON.parse(body.toString()) as { n: string }).n;

describe('a server that takes fewer requests at once than the configured limit', () => {
  it.each([
    [1, 20],
    [5, 100],
    [50, 100],
  ])('answers every line in the end: %d requests at once, %d lines', async (slots, lines) => {
    const { seen, answer } = busyServer(slots, 60);
    const concurrency = { per_model: 16 };
    world = await chunkWorld(lines, answer, { concurrency }, { gateway: RETRIES });
    const result = await world.run({ boxMs: 60_000 });
    expect(result).toMatchObject({ left: 'done', completed: lines, failed: 0 });
    if (slots >= 16) expect(seen.refused).toBe(0);
    // 0.9 and more on an idle machine, less on a busy one; a limit that stays at 1 uses at most 0.2 of several slots. The
    // property test of the adaptive limit has the exact bound.
    const used = (lines * 60) / (Math.min(slots, 16) * (seen.lastMs - seen.firstMs));
    expect(used).toBeGreaterThan(0.25);
  });

  it('costs lines their tries if the limit is not adaptive', async () => {
    const { answer } = busyServer(5, 200);
    const concurrency = { per_model: 16, adaptive: false };
    world = await chunkWorld(60, answer, { concurrency }, { gateway: RETRIES });
    const { failed } = await world.run({ boxMs: 60_000 });
    expect(failed).toBeGreaterThan(0);
  });

  it('gets no request during its Retry-After, and heartbeats say so', async () => {
    const sentMs: number[] = [];
    let refusedMs = 0;
    const answer: Answer = (_request, response) => {
      if (refusedMs > 0) sentMs.push(performance.now());
      else {
        refusedMs = performance.now();
        return void response.writeHead(429, { 'retry-after': '1.3' }).end('{}');
      }
      response.end(GOOD);
    };
    const concurrency = { per_model: 2 };
    world = await chunkWorld(3, answer, { concurrency }, { gateway: RETRIES });
    const beats: (string | null)[] = [];
    const env = new MockActivityEnvironment();
    env.on('heartbeat', ({ waitsFor }: { waitsFor: string | null }) => beats.push(waitsFor));
    expect(await world.run({}, env)).toMatchObject({ completed: 3, failed: 0 });
    // One request was in flight already when the first was refused.
    expect(sentMs.filter((ms) => ms - refusedMs >= 1_299)).toHaveLength(2);
    expect(beats).toContainEqual(
      expect.stringMatching(/^model m: its server asked for a pause, 1 s/),
    );
  });
});

describe('a line that is always refused with 429', () => {
  it('uses up its tries after twenty refusals that did not count', async () => {
    let refused = 0;
    world = await chunkWorld(
      400,
      ({ body }, response) => {
        if (nameOf(body) !== 'l0') return void response.end(GOOD);
        refused++;
        response.writeHead(429).end('{"error":{}}');
      },
      { concurrency: { per_model: 4 } },
      { gateway: { max_retries: 2, initial_backoff: '1ms', max_backoff: '1ms' } },
    );
    expect(await world.run()).toMatchObject({ completed: 399, failed: 1 });
    expect(refused).toBeGreaterThan(3);
    expect(refused).toBeLessThanOrEqual(23);
    expect((await world.answers()).get(0)).toMatchObject({ kind: FRAME_KIND.error, status: 429 });
  });

  it('keeps its refusals and its tries when its chunk goes to another worker', async () => {
    let refused = 0;
    world = await chunkWorld(
      1,
      (_request, response) => {
        refused++;
        world.drain.abort();
        response.writeHead(429).end('{"error":{}}');
      },
      { concurrency: { per_model: 16 } },
      { gateway: RETRIES },
    );
    expect(await world.run()).toMatchObject({ left: 'drain', answered: 0 });
    expect(refused).toBe(1);
    const headers = [];
    const scope = { batchId: BATCH_ID, safeModel: 'm' };
    for await (const { header } of world.journal.scan(scope, { from: 0, to: 1 })) {
      headers.push(header);
    }
    expect(headers).toEqual([expect.objectContaining({ tries: 0, refusals: 1 })]);
  });
});
