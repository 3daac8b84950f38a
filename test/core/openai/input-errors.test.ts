import { createInputErrors, type InputError } from '../../../core/openai/input-errors';

const fault = (line: number | null): InputError => ({
  code: line === null ? 'too_many_tasks' : 'invalid_request',
  message: 'x',
  param: null,
  line,
});

function listOf(lines: (number | null)[]): InputError[] {
  const errors = createInputErrors();
  for (const line of lines) errors.add(fault(line));
  expect(errors.count).toBe(lines.length);
  return errors.list();
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

describe('the errors of an input file', () => {
  it('are listed by line, after the errors of the whole file', () => {
    expect(listOf([1, 1, 7, null]).map(({ line }) => line)).toEqual([null, 1, 1, 7]);
    expect(listOf([])).toEqual([]);
  });

  it('are at most 100, plus one entry that counts the rest', () => {
    expect(listOf(numbers(100))).toHaveLength(100);
    const many = listOf([...numbers(50_000), null]);
    expect(many).toHaveLength(101);
    expect(many[0]?.line).toBeNull();
    expect(many[99]?.line).toBe(99);
    expect(many[100]).toEqual({
      code: 'too_many_errors',
      message: 'The input file has 49901 further errors.',
      param: null,
      line: null,
    });
    expect(listOf(numbers(101))[100]?.message).toBe('The input file has 1 further error.');
  });
});
