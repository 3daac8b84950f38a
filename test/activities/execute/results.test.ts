import { FRAME_KIND } from '../../../core/journal/frame';
import type { BackendOutcome } from '../../../inference/backend';
import type { Registry } from '../../../inference/registry';
import type { ChunkWorld } from './chunk-world';
import { BATCH_ID, chunkWorld } from './chunk-world';
import { ok } from './model-server';
import { endingWith } from '../../support/promises-of-sending';

let world: ChunkWorld;
afterEach(() => world.close());

/** A world of one line whose gateway always returns this outcome. */
async function play(outcome: BackendOutcome): Promise<ChunkWorld> {
  const played = (registry: Registry): Registry => ({
    ...registry,
    route: (model) => {
      const route = registry.route(model);
      const send = endingWith(() => outcome);
      return route && { ...route, backend: { ...route.backend, send } };
    },
  });
  const replace = ({ registry }: { registry: Registry }) => ({ registry: played(registry) });
  world = await chunkWorld(1, ok, {}, { replace, gateway: { max_retries: 0 } });
  return world;
}

const answer = (status: number, body: string): BackendOutcome => ({
  kind: 'answer',
  status,
  body: Buffer.from(body),
  retryAfter: null,
  droppedReason: null,
  dropped: null,
  isFinal: false,
  contentType: null,
  queueMs: null,
  requestId: 'from-the-server',
});

describe('a line without an answer', () => {
  it.each([
    ['timeout', 'request_timeout'],
    ['connection', 'connection_error'],
    ['too_large', 'response_too_large'],
  ] as const)('that failed with %s is in the error file as %s', async (reason, code) => {
    const { run, answers } = await play({ kind: 'failure', reason, message: 'for the test' });
    expect(await run()).toMatchObject({ next: 1, completed: 0, failed: 1 });
    expect((await answers()).get(0)).toMatchObject({
      kind: FRAME_KIND.error,
      status: 0,
      line: { custom_id: 'l0', response: null, error: { code } },
    });
  });
});

describe('a line with an answer', () => {
  it.each([
    [200, FRAME_KIND.output],
    [201, FRAME_KIND.output],
    [307, FRAME_KIND.error],
    [404, FRAME_KIND.error],
    [500, FRAME_KIND.error],
  ])('keeps status %d and goes to the right file', async (status, kind) => {
    const { run, answers } = await play(answer(status, '{"model":"m"}'));
    const counts = kind === FRAME_KIND.output ? [1, 0] : [0, 1];
    expect(await run()).toMatchObject({ next: 1, completed: counts[0], failed: counts[1] });
    expect((await answers()).get(0)).toMatchObject({
      kind,
      status,
      line: {
        response: { status_code: status, request_id: 'from-the-server', body: { model: 'm' } },
        error: null,
      },
    });
  });

  it('carries the usage and the tries of that answer', async () => {
    const usage = {
      prompt_tokens: 7,
      prompt_tokens_details: { cached_tokens: 2 },
      completion_tokens: 3,
      completion_tokens_details: { reasoning_tokens: 1 },
      total_tokens: 10,
    };
    const { run, journal } = await play(answer(200, JSON.stringify({ model: 'm', usage })));
    await run();
    const headers = [];
    const scope = { batchId: BATCH_ID, safeModel: 'm' };
    for await (const { header } of journal.scan(scope, { from: 0, to: 1 })) headers.push(header);
    expect(headers.length).toBeGreaterThan(0);
    for (const header of headers) {
      expect(header).toMatchObject({
        tries: 1,
        usage: {
          inputTokens: 7,
          cachedTokens: 2,
          outputTokens: 3,
          reasoningTokens: 1,
          totalTokens: 10,
        },
      });
    }
  });
});
