import type { PlannedOrInvalid, RowState } from '../../activities/contract';
import { announcePlan, type WritePhase } from '../../workers/announce-plan';

const ROW: RowState = { found: true, status: 'in_progress', stopCause: null };
const route = { queue: 'exec', requestTimeoutMs: 1_000 };
const alpha = { safe: 'alpha', model: 'alpha', entries: 3, ...route };
const delegate = {
  provider: 'p',
  queue: 'q',
  giveUpAtMs: 0,
  harvestGraceMs: 0,
  fallback: false,
};

function plan(
  models: (PlannedOrInvalid & { kind: 'planned' })['models'],
  unroutedLines = 0,
): PlannedOrInvalid {
  return { kind: 'planned', nonce: 'n', lineCount: 7, models, unroutedLines };
}

async function written(planned: PlannedOrInvalid): Promise<Parameters<WritePhase>[0][]> {
  const phases: Parameters<WritePhase>[0][] = [];
  await announcePlan(planned, (phase) => {
    phases.push(phase);
    return Promise.resolve(ROW);
  });
  return phases;
}

describe('announcePlan', () => {
  it('writes requests and models, and returns the row', async () => {
    const planned = plan([alpha]);
    expect(await announcePlan(planned, () => Promise.resolve(ROW))).toEqual({
      ...planned,
      row: ROW,
    });
    expect(await written(planned)).toEqual([
      { status: 'in_progress', total: 7, model: 'alpha', models: ['alpha'] },
    ]);
  });

  it('names no single model if there are lines without a route', async () => {
    expect(await written(plan([alpha], 1))).toMatchObject([{ model: null, models: ['alpha'] }]);
    const beta = { ...alpha, model: 'beta', undecided: true };
    expect(await written(plan([alpha, beta]))).toMatchObject([{ model: null, models: ['alpha'] }]);
  });

  it('takes a delegated model for a routed one', async () => {
    const beta = { ...alpha, model: 'beta', undecided: true, delegate };
    expect(await written(plan([beta]))).toMatchObject([{ model: 'beta', models: ['beta'] }]);
  });

  it('writes nothing for a file that was refused', async () => {
    const refused: PlannedOrInvalid = { kind: 'invalid', errorCount: 1 };
    expect(await announcePlan(refused, () => Promise.reject(new Error('unexpected')))).toBe(
      refused,
    );
  });

  it('returns the plan alone if the row cannot be written', async () => {
    const planned = plan([alpha]);
    expect(await announcePlan(planned, () => Promise.reject(new Error('away')))).toBe(planned);
  });

  it('does not wait for a row that takes long', async () => {
    const planned = plan([alpha]);
    expect(await announcePlan(planned, () => new Promise(() => undefined))).toBe(planned);
  });
});
