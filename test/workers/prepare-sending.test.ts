import type { PlannedModel, PlannedOrInvalid } from '../../activities/contract';
import { prepareSending } from '../../workers/prepare-sending';

const route = { queue: 'exec', requestTimeoutMs: 1_000 };

const delegate = {
  provider: 'p',
  queue: 'q',
  giveUpAtMs: 0,
  harvestGraceMs: 0,
  fallback: false,
};

interface Process {
  readonly breaker?: string;
  readonly sends?: boolean;
  readonly sharesPermits?: boolean;
  readonly endpoint?: string;
}

/** How many connections were opened for each model. */
function prepared(models: readonly Partial<PlannedModel>[] | null, process: Process = {}) {
  const { breaker = 'closed', sends = true, sharesPermits = false } = process;
  const counts: Record<string, number> = {};
  const routeTo = (model: string) => ({
    limiterKey: `limit of ${model}`,
    breaker: { state: breaker },
    backend: { prepare: (requests: number) => (counts[model] = requests) },
  });
  const registry = { route: (model: string) => (sends ? routeTo(model) : null) };
  const dispatcher = {
    limitOf: (key: string) => ({ limit: key === 'limit of a' ? 7 : 100, max: 100, pausedMs: 0 }),
  };
  const plan: PlannedOrInvalid =
    models === null
      ? { kind: 'invalid', errorCount: 1 }
      : {
          ...{ kind: 'planned', nonce: 'n', lineCount: 1, unroutedLines: 0 },
          models: models.map((one) => ({ safe: 'x', model: 'x', entries: 10, ...route, ...one })),
        };
  prepareSending(plan, process.endpoint ?? '/v1/chat/completions', {
    ...{ registry: registry as never, dispatcher, sharesPermits },
  });
  return counts;
}

describe('prepareSending', () => {
  it('opens as many connections as requests may begin, for each model', () => {
    expect(prepared([{ model: 'a' }, { model: 'b' }])).toEqual({ a: 7, b: 10 });
  });

  it.each<[string, Partial<PlannedModel>[] | null, Process]>([
    ['for a model that a provider runs', [{ delegate }], {}],
    ['for a gateway that is away', [{}], { breaker: 'open' }],
    ['for a model that this process does not send', [{}], { sends: false }],
    ['for a file that was refused', null, {}],
    ['if its permits are borrowed', [{}], { sharesPermits: true }],
    ['for recordings', [{}], { endpoint: '/v1/audio/transcriptions' }],
  ])('opens none %s', (_why, models, process) => {
    expect(prepared(models, process)).toEqual({});
  });
});
