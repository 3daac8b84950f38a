import { NightshiftError } from '../../../core/errors';
import { createPassThrough } from '../../../workers/pass-through';
import { BATCH_ID, type ChunkWorld, chunkWorld } from './chunk-world';

let world: ChunkWorld | null = null;
afterEach(async () => {
  await world?.close();
  world = null;
});

async function open(passThrough: (batchId: string) => Promise<Record<string, string>>) {
  world = await chunkWorld(
    3,
    (_request, response) => response.setHeader('content-type', 'application/json').end('{}'),
    {},
    { passThrough },
  );
  return world;
}

it('sends the headers of the create call with every request', async () => {
  const { run, server } = await open(async (batchId) => {
    expect(batchId).toBe(BATCH_ID);
    return { authorization: 'Bearer passed', 'x-team': 'blue', 'x-request-id': 'not theirs' };
  });
  expect(await run({ passesHeaders: true })).toMatchObject({ completed: 3 });
  expect(server.received).toHaveLength(3);
  for (const { headers } of server.received) {
    expect(headers).toMatchObject({ authorization: 'Bearer passed', 'x-team': 'blue' });
    expect(headers['x-request-id']).toMatch(/^batch_req_/);
  }
});

it('sends nothing while the headers of the create call cannot be read', async () => {
  let asked = 0;
  const seenBefore: number[] = [];
  const { run, server } = await open(async () => {
    seenBefore.push(server.received.length);
    if (++asked < 3) throw new NightshiftError('postgres_unavailable', 'away');
    return { 'x-team': 'blue' };
  });
  expect(await run({ passesHeaders: true })).toMatchObject({ completed: 3 });
  expect(seenBefore).toEqual([0, 0, 0]);
  expect(server.received.map(({ headers }) => headers['x-team'])).toEqual(['blue', 'blue', 'blue']);
});

it('does not read headers if the batch has none', async () => {
  const { run, server } = await open(() => Promise.reject(new Error('asked')));
  expect(await run()).toMatchObject({ completed: 3 });
  expect(server.received[0]?.headers['authorization']).toBeUndefined();
});

describe('the header cache of a worker', () => {
  const sealed = { keyId: 'k', sealed: Buffer.alloc(1) };
  const vault = { open: (batchId: string) => ({ 'x-batch': batchId }) };

  it('reads once for many chunks of a batch', async () => {
    let reads = 0;
    const passThrough = createPassThrough(async () => (reads++, sealed), vault);
    for (let i = 0; i < 5; i++) expect(await passThrough('a')).toEqual({ 'x-batch': 'a' });
    expect(await passThrough('b')).toEqual({ 'x-batch': 'b' });
    expect(reads).toBe(2);
  });

  it('fails when the headers are gone, rather than return none', async () => {
    const passThrough = createPassThrough(async () => null, vault);
    await expect(passThrough('a')).rejects.toMatchObject({ code: 'unavailable', retryable: true });
  });

  it('keeps the headers of a bounded number of batches', async () => {
    let reads = 0;
    const passThrough = createPassThrough(async () => (reads++, sealed), vault);
    for (let i = 0; i < 300; i++) await passThrough(`b${i}`);
    await passThrough('b0');
    expect(reads).toBe(301);
    await passThrough('b299');
    expect(reads).toBe(301);
  });
});
