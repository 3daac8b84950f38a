import { createContext, runInContext } from 'node:vm';
import { withShortStacks } from '../../workers/short-stacks';

describe('stack traces of workflows', () => {
  it('have four frames, whose lines are those of the bundle', () => {
    const bundle = [
      'function a() { return b(); } function b() { return c(); } function c() { return d(); }',
      'function d() { return e(); } function e() {',
      '  return new Error().stack; }',
      'a();',
    ].join('\n');
    const stack = String(runInContext(withShortStacks(bundle), createContext()));
    const frames = [...stack.matchAll(/at (\w+) \(evalmachine[^:]*:(\d+)/g)];
    expect(frames.map(([, name, line]) => `${name} ${line}`)).toEqual(['e 3', 'd 2', 'c 1', 'b 1']);
  });
});
