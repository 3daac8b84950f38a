import { EmptyQueueWatch } from '../../../core/dispatch/empty-queue-watch';

/** Answers once a second, from second `from` up to `to`. Returns the seconds in which it is to be reported. */
function answers(
  watch: EmptyQueueWatch,
  [from, to]: readonly [number, number],
  sample: { queueMs?: number; isLineWaiting?: boolean; model?: string } = {},
): number[] {
  const { queueMs = 0, isLineWaiting = true, model = 'm' } = sample;
  const reported: number[] = [];
  for (let second = from; second <= to; second++) {
    const nowMs = second * 1_000;
    if (watch.onAnswer(model, { queueMs, isLineWaiting, nowMs })) reported.push(second);
  }
  return reported;
}

it('reports a queue that was empty for 30 s while lines waited, at most every 10 minutes', () => {
  const watch = new EmptyQueueWatch();
  expect(answers(watch, [0, 1_300])).toEqual([30, 630, 1_230]);
});

it('reports nothing while requests wait in the queue, or no line waits for a permit', () => {
  const watch = new EmptyQueueWatch();
  expect(answers(watch, [0, 100], { queueMs: 1 })).toEqual([]);
  expect(answers(watch, [101, 200], { isLineWaiting: false })).toEqual([]);
});

it('begins anew after each request that waited in the queue', () => {
  const watch = new EmptyQueueWatch();
  expect(answers(watch, [0, 29])).toEqual([]);
  expect(answers(watch, [30, 30], { queueMs: 2 })).toEqual([]);
  expect(answers(watch, [31, 62])).toEqual([61]);
});

it('follows each model by itself, and reports one of them', () => {
  const watch = new EmptyQueueWatch();
  expect(answers(watch, [0, 20], { model: 'a' })).toEqual([]);
  expect(answers(watch, [21, 49], { model: 'b' })).toEqual([]);
  expect(answers(watch, [50, 50], { model: 'a' })).toEqual([50]);
  expect(answers(watch, [51, 60], { model: 'b' })).toEqual([]);
});
