import { ServiceError } from '@temporalio/client';
import { untilSettled } from '../../client/until-settled';

/** The error that the SDK throws if the server answers with this gRPC code. */
function refusal(code: number, details: string): ServiceError {
  const cause = Object.assign(new Error(`${code}: ${details}`), { code, details, metadata: {} });
  return new ServiceError('Failed to describe schedule', { cause });
}

const UNAVAILABLE = 14;
const OPTIONS = { what: 'the schedule s', limitMs: 1_000, everyMs: 1 };

describe('a call to a server that has just started', () => {
  it.each([
    ['UNAVAILABLE', 14],
    ['DEADLINE_EXCEEDED', 4],
    ['FAILED_PRECONDITION', 9],
  ])('is repeated if the server answers with %s', async (_, code) => {
    let asked = 0;
    const work = () => (++asked < 3 ? Promise.reject(refusal(code, 'no')) : Promise.resolve('yes'));
    expect(await untilSettled(work, OPTIONS)).toBe('yes');
    expect(asked).toBe(3);
  });

  it.each([
    ['a permanent refusal', refusal(7, 'not allowed')],
    ['an error that is not from a server', new TypeError('no')],
  ])('is not repeated after %s', async (_, error) => {
    let asked = 0;
    const work = () => (asked++, Promise.reject(error));
    await expect(untilSettled(work, OPTIONS)).rejects.toBe(error);
    expect(asked).toBe(1);
  });

  it('fails with the message of the server when time is up', async () => {
    const work = () => Promise.reject(refusal(UNAVAILABLE, 'shard is not there'));
    await expect(untilSettled(work, { ...OPTIONS, limitMs: 5 })).rejects.toMatchObject({
      code: 'temporal_unavailable',
      message: expect.stringMatching(/for the schedule s failed: shard is not there\./) as string,
    });
  });
});
