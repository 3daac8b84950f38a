import fc from 'fast-check';
import { createPromptFinder } from '../../../core/openai/prompt-bytes';

const find = createPromptFinder(0);

/** The text of each range of a line's prompt. */
function promptOf(line: string, body = (JSON.parse(line) as { body: object }).body): string[] {
  const padding = Buffer.from('{"body":{"messages":"of another line"}}\n');
  const own = Buffer.from(line);
  const bytes = Buffer.concat([padding, own, padding]);
  const start = padding.length;
  const { ranges } = find({ bytes, start, end: start + own.length }, { ...body });
  return Array.from({ length: ranges.length / 2 }, (_, i) =>
    bytes.toString('utf8', ranges[2 * i], ranges[2 * i + 1]),
  );
}

describe('the prompt of a line', () => {
  it('is the member that the endpoint reads, whatever stands before it', () => {
    const body = '{"model":"m","n":[1,{"messages":2}],"messages":[{"content":"\\"messages\\":"}]';
    expect(promptOf(`{"custom_id":"body","x":{"body":1},"body":${body},"stop":1}}`)).toEqual([
      '[{"content":"\\"messages\\":"}],"stop":1}}',
    ]);
    expect(promptOf('{"body":{"prompt":"a b"}}')).toEqual(['"a b"}}']);
    expect(promptOf(' { "body" : { "input" : [1,2] } }')).toEqual(['[1,2] } }']);
  });

  it('has tools and instructions first, because models read them first', () => {
    const line =
      '{"body":{"input":"text","tools":[{"name":"t"}],"instructions":"be brief","model":"m"}}';
    expect(promptOf(line)).toEqual(['[{"name":"t"}]', '"be brief"', '"text"']);
  });

  it('is empty if the body has no such member', () => {
    expect(promptOf('{"body":{"model":"m","messages":null,"tools":null}}')).toEqual([]);
  });

  it('is not looked for in a short line', () => {
    const bytes = Buffer.from('{"body":{"prompt":"a"}}');
    const line = { bytes, start: 0, end: bytes.length };
    expect(createPromptFinder(bytes.length)(line, { prompt: 'a' }).ranges).toHaveLength(2);
    expect(createPromptFinder(bytes.length + 1)(line, { prompt: 'a' }).ranges).toEqual([]);
  });

  it('is found if the names are escaped or repeated', () => {
    expect(promptOf('{"b\\u006fdy":{"\\u0070rompt":"a"}}')).toEqual(['"a"}}']);
    expect(promptOf('{"body":{"prompt":"a","prompt":"b"}}')).toEqual(['"a","prompt":"b"}}']);
  });

  it('lies in the line and begins with the value for any request', () => {
    const body = fc.dictionary(
      fc.oneof(fc.constantFrom('tools', 'instructions', 'messages', 'input'), fc.string()),
      fc.jsonValue(),
      { maxKeys: 6 },
    );
    fc.assert(
      fc.property(body, fc.constantFrom(undefined, 1), (members, indent) => {
        const line = JSON.stringify({ custom_id: 'a', body: members }, null, indent);
        const parsed = (JSON.parse(line) as { body: Record<string, unknown> }).body;
        const found = promptOf(line, parsed);
        const main = parsed['messages'] == null ? 'input' : 'messages';
        const names = ['tools', 'instructions', main].filter((name) => parsed[name] != null);
        expect(found).toHaveLength(names.length);
        names.forEach((name, i) => {
          const value = JSON.stringify(parsed[name]);
          const text = found[i]!.replace(/\s/g, '');
          expect(text.startsWith(value.replace(/\s/g, ''))).toBe(true);
        });
      }),
    );
  });
});
