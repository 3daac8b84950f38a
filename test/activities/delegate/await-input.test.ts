import { awaitInput } from '../../../activities/delegate/await-input';
import type { JobAttempt } from '../../../activities/delegate/job-attempt';
import type { CallFailure, IdempotentResult, InputState } from '../../../providers/provider';

const { signal } = new AbortController();
const FAILURE: CallFailure = { code: null, message: 'no', status: 401, retryAfterMs: null };
const ok = (value: InputState): IdempotentResult<InputState> => ({ outcome: 'ok', value });

/** An attempt whose provider answers with `result`; the batch gives up after `leftMs`. */
function attemptWith(result: IdempotentResult<InputState>, leftMs = 3_600_000) {
  const asked: string[] = [];
  const called: unknown[] = [];
  const api = {
    inputState: async (file: string) => {
      asked.push(file);
      return result;
    },
  };
  const attempt = {
    deps: {
      observer: { called: (...call: unknown[]) => void called.push(call) },
      logger: { warn: () => undefined },
    },
    input: { giveUpAtMs: Date.now() + leftMs, job: { jobId: 'job_1' } },
    provider: { name: 'azure', api },
  } as unknown as JobAttempt;
  return { attempt, asked, called };
}

describe('the wait for an uploaded input', () => {
  it('ends when the provider has processed it', async () => {
    const { attempt, asked, called } = attemptWith(ok('ready'));
    await awaitInput(attempt, { upload: 'file-1' }, signal);
    expect(asked).toEqual(['file-1']);
    expect(called).toEqual([['azure', 'input', 'ok']]);
  });

  it('is an attempt that is repeated after 15 s', async () => {
    const { attempt, asked } = attemptWith(ok('processing'));
    await expect(awaitInput(attempt, { upload: 'file-1' }, signal)).rejects.toMatchObject({
      type: 'provider_wait',
      nextRetryDelay: 15_000,
      message: 'azure: the input file is being processed',
    });
    expect(asked).toHaveLength(1);
  });

  it('is not longer than the batch waits for its provider', async () => {
    const { attempt } = attemptWith(ok('processing'), 4_000);
    const failure: unknown = await awaitInput(attempt, { upload: 'f' }, signal).catch((e) => e);
    const { nextRetryDelay } = failure as { nextRetryDelay: number };
    expect(nextRetryDelay).toBeGreaterThan(0);
    expect(nextRetryDelay).toBeLessThanOrEqual(4_000);
  });

  it('is repeated after five minutes if the key is wrong', async () => {
    const { attempt } = attemptWith({ outcome: 'auth', failure: FAILURE });
    await expect(awaitInput(attempt, { upload: 'f' }, signal)).rejects.toMatchObject({
      type: 'provider_wait',
      nextRetryDelay: 300_000,
    });
  });

  it('makes no call for a job without an upload', async () => {
    const { attempt, asked } = attemptWith(ok('processing'));
    await awaitInput(attempt, { upload: null }, signal);
    expect(asked).toEqual([]);
  });
});
