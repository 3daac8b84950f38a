import { crashesBefore } from '../../../activities/execute/worker-crashes';
import { AdmissionQueue } from '../../../activities/execute/admission-queue';

describe('chunks that wait for a permit inside a process', () => {
  it('are at most six per tenant and model, 16 in all, and one more for each further tenant', () => {
    const room = new AdmissionQueue();
    for (const tenant of ['a', 'b']) {
      for (let i = 0; i < 6; i++) expect(room.enter('m', tenant)).toBe(true);
      expect([room.enter('m', tenant), room.hasPlace('other', tenant)]).toEqual([false, true]);
    }
    for (let i = 0; i < 4; i++) expect(room.enter('m', 'c')).toBe(true);
    expect(room.hasPlace('m', 'c')).toBe(false);
    for (let i = 0; i < 16; i++) expect(room.enter('m', `t${i}`)).toBe(true);
    expect(room.hasPlace('m', 't0')).toBe(false);
    expect(room.hasPlace('m', 'one too many')).toBe(false);
    room.leave('m', 't0');
    expect(room.hasPlace('m', 't0')).toBe(true);
  });
});

describe('the delay of chunks that wait at the server', () => {
  const at = (nowMs: number, random = 0.5) => ({ nowMs, random });

  it('grows with their number, so that a process sees five attempts per second', () => {
    const room = new AdmissionQueue();
    expect(room.retryInMs('m', 'k0', at(0))).toBe(200);
    for (let i = 1; i < 100; i++) room.retryInMs('m', `k${i}`, at(i));
    expect(room.retryInMs('m', 'k0', at(100))).toBe(20_000);
    expect(room.retryInMs('other', 'k0', at(100))).toBe(200);
    for (let i = 0; i < 1_000; i++) room.retryInMs('m', `k${i}`, at(200));
    expect(room.retryInMs('m', 'k0', at(300))).toBe(60_000);
    expect(room.retryInMs('m', 'k0', at(300, 0))).toBe(45_000);
  });

  it('shrinks when some have begun or no longer come back', () => {
    const room = new AdmissionQueue();
    for (let i = 0; i < 100; i++) room.retryInMs('m', `k${i}`, at(0));
    for (let i = 0; i < 50; i++) room.forget('m', `k${i}`);
    expect(room.retryInMs('m', 'k99', at(1))).toBe(10_000);
    expect(room.retryInMs('m', 'k99', at(200_000))).toBe(200);
  });
});

describe('worker crashes of earlier attempts', () => {
  it.each([
    ['the first attempt', undefined, 1, 0],
    ['attempts that were deferred at once', undefined, 7, 0],
    ['an attempt that ended by itself', { deaths: 2, holding: false }, 5, 2],
    ['an attempt that did not end by itself', { deaths: 2, holding: true }, 4, 3],
    ['an attempt of an older release', { next: 3, inFlight: 1 }, 3, 2],
  ])('are counted from the last heartbeat: %s', (_, details, attempt, deaths) => {
    expect(crashesBefore(details, attempt)).toBe(deaths);
  });
});
