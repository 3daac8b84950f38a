import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { asFailure, withBoundedFailures } from '../../../activities/runtime/failure';
import { NightshiftError } from '../../../core/errors';

describe('the failure of an activity', () => {
  it('has the error code as its type, and is retried only if the error is retryable', () => {
    const lasting = asFailure(new NightshiftError('input_missing', 'gone'));
    expect(lasting).toBeInstanceOf(ApplicationFailure);
    expect(lasting).toMatchObject({ type: 'input_missing', nonRetryable: true, message: 'gone' });
    const passing = asFailure(new NightshiftError('object_store_failed', 'reset'));
    expect(passing).toMatchObject({ type: 'object_store_failed', nonRetryable: false });
  });

  it('is the error itself if that is not one of ours', () => {
    const error = new Error('x');
    expect(asFailure(error)).toBe(error);
  });
});

describe('failures on their way to Temporal', () => {
  const long = '😀\0'.repeat(1_000_000);

  /** The failure of an activity that throws `error`. */
  function failureOf(error: Error): Promise<unknown> {
    const { fail } = withBoundedFailures({ fail: () => Promise.reject(error) });
    return fail().catch((failure: unknown) => failure);
  }

  it('are unchanged if they fit, and cancellations always', async () => {
    const error = new Error('x', { cause: new NightshiftError('object_missing', 'gone') });
    expect(await failureOf(error)).toBe(error);
    const cancelled = new CancelledFailure(long);
    expect(await failureOf(cancelled)).toBe(cancelled);
  });

  it('are short and keep their type, even if message and causes are long', async () => {
    const thrown = new NightshiftError('input_missing', long, { cause: new Error(long) });
    const bounded = (await failureOf(asFailure(thrown) as Error)) as ApplicationFailure;
    expect(bounded).toMatchObject({ type: 'input_missing', nonRetryable: true });
    for (let error: unknown = bounded; error instanceof Error; error = error.cause) {
      expect(Buffer.byteLength(JSON.stringify(error.message))).toBeLessThanOrEqual(2_000);
      expect(error.stack?.length).toBeLessThan(10_000);
    }
    expect((bounded.cause as Error).cause).toBeInstanceOf(Error);
  });

  it('are finite even if an error is its own cause', async () => {
    const error = new Error(long);
    error.cause = error;
    expect(((await failureOf(error)) as Error).message.length).toBeLessThan(2_000);
  });

  it('are bounded for every activity', async () => {
    const { one } = withBoundedFailures({ one: () => Promise.reject(new Error(long)) });
    await expect(one()).rejects.toMatchObject({ message: expect.stringMatching(/^.{1,2000}$/u) });
  });
});
