import type { PlannedModel } from '../../activities/contract';
import { prepareSending } from '../../workers/prepare-sending';

const route = { queue: 'exec', requestTimeoutMs: 1_000 };

/** How many connections were opened for each model. */
function prepared(
  models: readonly Partial<PlannedModel>[],
  breaker = 'closed',
): Map<string, number> {
  const counts = new Map<string, number>();
  const registry = {
    route: (model: string) => ({
      limiterKey: `limit of ${model}`,
      breaker: { state: breaker },
      backend: { prepare: (requests: number) => counts.set(model, requests) },
    }),
  };
  const dispatcher = {
    limitOf: (key: string) => ({ limit: key === 'limit of a' ? 7 : 100, max: 100, pausedMs: 0 }),
  };
  prepareSending(
    {
      kind: 'planned',
      ...{ nonce: 'n', lineCount: 1, unroutedLines: 0 },
      models: models.map((one) => ({ safe: 'x', model: 'x', entries: 10, ...route, ...one })),
    },
    { registry: registry as never, dispatcher },
  );
  return counts;
}

describe('prepareSending', () => {
  it('opens as many connections as requests may begin, for each model', () => {
    expect(prepared([{ model: 'a' }, { model: 'b' }])).toEqual(
      new Map(Object.entries({ a: 7, b: 10 })),
    );
  });

  it('opens none for a model that a provider runs, or whose gateway is away', () => {
    const delegate = {
      provider: 'p',
      queue: 'q',
      giveUpAtMs: 0,
      harvestGraceMs: 0,
      fallback: false,
    };
    expect(prepared([{ delegate }]).size).toBe(0);
    expect(prepared([{}], 'open').size).toBe(0);
  });

  it('opens none for a model that this process does not send, or for a file that was refused', () => {
    const registry = { route: () => null };
    const dispatcher = { limitOf: () => ({ limit: 1, max: 1, pausedMs: 0 }) };
    prepareSending({ kind: 'invalid', errorCount: 1 }, { registry, dispatcher });
    prepareSending(
      {
        ...{ kind: 'planned', nonce: 'n', lineCount: 1, unroutedLines: 0 },
        models: [{ safe: 'x', model: 'x', entries: 10, ...route }],
      },
      { registry, dispatcher },
    );
  });
});
