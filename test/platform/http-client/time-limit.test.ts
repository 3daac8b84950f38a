import { TimeLimit } from '../../../platform/http-client/time-limit';

const LENGTH_MS = 10_000;
let ended: string[];

beforeEach(() => {
  jest.useFakeTimers();
  ended = [];
});
afterEach(() => jest.useRealTimers());

function begin(name: string, ms = LENGTH_MS, then: () => void = () => undefined): TimeLimit {
  return new TimeLimit(ms, {
    onTimeLimit: () => {
      ended.push(name);
      then();
    },
  });
}

describe('time limits', () => {
  it('end each at its own time, whatever their length', () => {
    begin('first');
    jest.advanceTimersByTime(4_000);
    begin('second');
    begin('short', 1_000);
    jest.advanceTimersByTime(1_000);
    expect(ended).toEqual(['short']);
    jest.advanceTimersByTime(4_999);
    expect(ended).toEqual(['short']);
    jest.advanceTimersByTime(1);
    expect(ended).toEqual(['short', 'first']);
    jest.advanceTimersByTime(3_999);
    expect(ended).toEqual(['short', 'first']);
    jest.advanceTimersByTime(1);
    expect(ended).toEqual(['short', 'first', 'second']);
  });

  it('begin anew only while they run', () => {
    const [renewed, stopped] = [begin('renewed'), begin('stopped')];
    begin('plain');
    jest.advanceTimersByTime(6_000);
    renewed.restart();
    stopped.stop();
    stopped.restart();
    jest.advanceTimersByTime(9_999);
    expect(ended).toEqual(['plain']);
    jest.advanceTimersByTime(1);
    expect(ended).toEqual(['plain', 'renewed']);
    renewed.restart();
    jest.advanceTimersByTime(2 * LENGTH_MS);
    expect(ended).toEqual(['plain', 'renewed']);
  });

  it('may begin and stop others while they end', () => {
    const others: TimeLimit[] = [];
    begin('a', LENGTH_MS, () => {
      others[0]?.stop();
      begin('later');
    });
    others.push(begin('b'));
    begin('c');
    jest.advanceTimersByTime(LENGTH_MS);
    expect(ended).toEqual(['a', 'c']);
    jest.advanceTimersByTime(LENGTH_MS);
    expect(ended).toEqual(['a', 'c', 'later']);
  });

  it('share one timer, and leave none when all are stopped', () => {
    const limits = Array.from({ length: 100 }, () => begin('never'));
    expect(jest.getTimerCount()).toBe(1);
    for (const limit of limits) limit.stop();
    expect(jest.getTimerCount()).toBe(0);
    begin('alone').stop();
    expect(jest.getTimerCount()).toBe(0);
  });
});
