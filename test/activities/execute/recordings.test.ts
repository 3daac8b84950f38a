import { createExecuteChunk } from '../../../activities/execute/execute-chunk';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ExecuteChunkResult } from '../../../activities/contract';
import { BATCH_ID, chunkWorld, INPUT_KEY, NONCE } from './chunk-world';

/** Chunks of endpoints whose requests name recordings. */

it('ends each line as unsupported_endpoint and sends nothing', async () => {
  const world = await chunkWorld(3, (_, response) => response.end('{}'));
  try {
    const env = new MockActivityEnvironment();
    const result: ExecuteChunkResult = await env.run(createExecuteChunk(world.deps), {
      ...{ batchId: BATCH_ID, planNonce: NONCE, tenant: 'default', inputKey: INPUT_KEY },
      ...{ endpoint: '/v1/audio/transcriptions', model: 'm', safe: 'm', from: 0, to: 3 },
      ...{ deadlineMs: Date.now() + 3_600_000, boxMs: 1_000, p95Ms: null, priority: 3 },
    });
    expect(result).toMatchObject({ next: 3, completed: 0, failed: 3, left: 'done' });
    const answers = [...(await world.answers()).values()];
    expect(answers.map(({ line }) => line.error?.code)).toEqual(
      Array(3).fill('unsupported_endpoint'),
    );
    expect(world.server.received).toEqual([]);
  } finally {
    await world.close();
  }
});
