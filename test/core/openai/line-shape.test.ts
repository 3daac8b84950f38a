import {
  createLineIndex,
  RECORD,
  RECORD_WORDS,
  type IndexRules,
} from '../../../core/openai/line-index';
import { line, RULES } from './scan';

const INDEX = createLineIndex()!;
const INDEX_RULES: IndexRules = {
  url: Buffer.from(`"${RULES.endpoint}"`),
  required: ['messages'],
  countsInputs: false,
  answersAudio: false,
  maxLineBytes: RULES.maxLineBytes,
  json: RULES.json,
  seed: 7,
};

/** The records of lines that are read in one call. */
function recordsOf(lines: readonly string[]): Uint32Array[] {
  const { count, records } = INDEX.read(Buffer.from(lines.join('\n')), INDEX_RULES)!;
  return Array.from({ length: count }, (_, i) =>
    records.slice(i * RECORD_WORDS, (i + 1) * RECORD_WORDS),
  );
}

describe('a line that is compared with the line before', () => {
  it.each<[string, string, string]>([
    ['an escape in the custom_id', '"custom_id":"a"', '"custom_id":"\\u0061"'],
    ['an empty custom_id', '"custom_id":"a"', '"custom_id":""'],
    ['a long custom_id', '"custom_id":"a"', `"custom_id":"${'a'.repeat(513)}"`],
    ['an escape in the model', '"model":"m"', '"model":"\\u006d"'],
    ['no model', '"model":"m"', '"model":""'],
    ['another url', '/completions"', '/completion"'],
    ['another method', 'POST', 'PUSH'],
    ['a fault in a text', '"hi"', '"\\x"'],
    ['a text that does not end', '"hi"', '"hi'],
    ['another name', '"messages"', '"message_"'],
    ['a name for a value', '"m",', '"m":'],
    ['more behind the end', '}', '}}'],
    ['less at the end', '}}', '}'],
  ])('is not taken for a good one with %s', (_what, from, to) => {
    const good = line();
    const other = good.replace(from, to);
    expect(other).not.toBe(good);
    const shapes = recordsOf([good, other, good, good, other]).map((words) => words[RECORD.shape]);
    expect(shapes).toEqual([1, 0, 1, 1, 0]);
  });

  it('has its fields in their places', () => {
    const prompts = ['Be brief.', 'Be\\nlong.'.repeat(40), '', 'Be brief.', 'é'.repeat(200)];
    const lines = prompts.map((content, i) => {
      const messages = [
        { role: 'system', content },
        { role: 'user', content: `${i}` },
      ];
      return line(
        { custom_id: 'c'.repeat(i + 1) },
        { messages, model: `m${i % 2}`, user: content },
      );
    });
    const alone = lines.map((one) => recordsOf([one])[0]!);
    const text = Buffer.from(lines.join('\n'));
    recordsOf(lines).forEach((words, i) => {
      const start = words[RECORD.start]!;
      const moved = [RECORD.idStart, RECORD.idEnd, RECORD.modelStart, RECORD.modelEnd, RECORD.end];
      for (const word of moved) expect(words[word]! - start).toBe(alone[i]![word]);
      const same = [RECORD.shape, RECORD.idHash, RECORD.prefixHash, RECORD.chainLength];
      for (const word of same) expect(words[word]).toBe(alone[i]![word]);
      const [from, to] = [words[RECORD.systemStart]!, words[RECORD.systemEnd]!];
      const written = JSON.stringify(prompts[i]);
      expect(text.toString('utf8', from, to)).toBe(to === 0 ? '' : written);
      expect(to === 0).toBe(alone[i]![RECORD.systemEnd] === 0);
    });
  });
});
