import { within } from '../../platform/within';

const never = new Promise<never>(() => undefined);
const isLate = () => 'late';

it('gives the result or the error of work that is in time', async () => {
  expect(await within(60_000, Promise.resolve('done'), isLate)).toBe('done');
  await expect(within(60_000, Promise.reject(new Error('failed')), isLate)).rejects.toThrow(
    'failed',
  );
});

it('gives what replaces work that takes too long, which may be an error', async () => {
  expect(await within(1, never, isLate)).toBe('late');
  const fail = () => {
    throw new Error('too late');
  };
  await expect(within(1, never, fail)).rejects.toThrow('too late');
});

it('ignores how late work ends', async () => {
  let fail: (error: Error) => void = () => undefined;
  const work = new Promise<never>((_resolve, reject) => (fail = reject));
  expect(await within(1, work, isLate)).toBe('late');
  const unhandled = jest.fn();
  process.on('unhandledRejection', unhandled);
  fail(new Error('nobody waits'));
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

it('leaves no timer behind', async () => {
  jest.useFakeTimers();
  try {
    await within(60_000, Promise.resolve(), isLate);
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});
