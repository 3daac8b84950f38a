import { userAnswer } from '../round/answers';
import { checkRound } from './checker';
import type { Disturbance, UserCall } from './evidence';
import { KILL, NOW_MS, round } from './fixtures';

const GOOD: UserCall = {
  ...{ index: 7, sentMs: NOW_MS + 500, endedMs: NOW_MS + 700 },
  ...{ end: 'whole', status: 200, text: userAnswer(7) },
};
const GATEWAY: Disturbance = { ...KILL, part: 'gateway' };
const error = (code: string) => JSON.stringify({ error: { code } });

function faults(call: Partial<UserCall>, disturbances: readonly Disturbance[] = []): string[] {
  const evidence = { ...round({ disturbances }), users: [{ ...GOOD, ...call }] };
  return checkRound(evidence).violations.map(({ detail }) => detail.replace(/:.*/s, ''));
}

it('accepts the exact bytes of an answer, and nothing else that looks whole', () => {
  expect(faults({})).toEqual([]);
  const part = userAnswer(7).slice(0, 40);
  expect(faults({ text: part }, [GATEWAY])).toEqual(['other bytes']);
  expect(faults({ text: userAnswer(8) }, [GATEWAY])).toEqual(['other bytes']);
  expect(faults({ text: part, end: 'broken' }, [GATEWAY])).toEqual([]);
  expect(faults({ text: 'x', end: 'broken' }, [GATEWAY])).toEqual(['other bytes, then broken']);
});

it('accepts errors with a code of the gateway, while it or its model server is struck', () => {
  const refused = { status: 503, text: error('no_backends') };
  expect(faults(refused, [GATEWAY])).toEqual([]);
  expect(faults(refused, [{ ...GATEWAY, part: 'model-server' }])).toEqual([]);
  expect(faults({ ...refused, text: error('x') }, [GATEWAY])).toEqual(['an unclear error']);
  expect(faults({ ...refused, text: 'oops' }, [GATEWAY])).toEqual(['an unclear error']);
  expect(faults({ status: null, text: '', end: 'broken' }, [GATEWAY])).toEqual([]);
});

it('accepts no error because of anything else, and no silence', () => {
  const refused = { status: 503, text: error('no_backends') };
  expect(faults(refused, [KILL])).toEqual(['an error without a reason']);
  expect(faults(refused, [{ ...GATEWAY, fromMs: NOW_MS + 800 }])).toEqual([
    'an error without a reason',
  ]);
  expect(faults({ status: null, text: '', end: 'hangs' }, [GATEWAY])).toEqual(['no answer']);
});
