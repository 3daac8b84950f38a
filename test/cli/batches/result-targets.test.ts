import { targetsBeside } from '../../../cli/batches/result-targets';

describe('default result files', () => {
  it.each([
    ['data/in.jsonl', 'data/in.output.jsonl', 'data/in.errors.jsonl'],
    ['in', 'in.output.jsonl', 'in.errors.jsonl'],
    ['a.b/in', 'a.b/in.output.jsonl', 'a.b/in.errors.jsonl'],
  ])('of %s are %s and %s', (input, output, errors) =>
    expect(targetsBeside(input)).toEqual({ output, errors, audio: null }),
  );
});
