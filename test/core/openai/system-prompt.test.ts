import fc from 'fast-check';
import { createPrefixHasher } from '../../../core/openai/system-prompt';

const hash = (body: object) => createPrefixHasher()(body as Record<string, unknown>);
const chat = (content: unknown, role = 'system') => ({
  messages: [
    { role: 'user', content: 'hi' },
    { role, content },
    { role: 'system', content: 'later' },
  ],
});

/** FNV-1a, 32 bits, the slow way. */
function reference(text: string): number {
  let value = 2166136261n;
  for (const byte of Buffer.from(text)) value = ((value ^ BigInt(byte)) * 16777619n) % 2n ** 32n;
  return Number(value);
}

describe('the system prompt', () => {
  it.each<[object, string | null]>([
    [chat('be brief'), 'be brief'],
    [chat('be brief', 'developer'), 'be brief'],
    [chat([{ type: 'text', text: 'be ' }, { type: 'image_url' }, { text: 'brief' }]), 'be brief'],
    [chat(''), ''],
    [{ instructions: 'be brief', input: 'x' }, 'be brief'],
    [{ input: [{ role: 'developer', content: [{ type: 'input_text', text: 'a' }] }] }, 'a'],
    [{ messages: [{ role: 'user', content: 'x' }] }, null],
    [{ messages: 'x', input: ['a', 'b'] }, null],
    [{ messages: [null], instructions: null }, null],
    [{}, null],
  ])('of %j is %j', (body, text) => {
    expect(hash(body)).toBe(text === null ? 0 : reference(text));
  });
});

describe('the prefix hash of a request', () => {
  it('is 0 without a system prompt and matches known FNV values with one', () => {
    expect(hash({})).toBe(0);
    expect(hash({ instructions: '' })).toBe(0x811c9dc5);
    expect(hash({ instructions: 'a' })).toBe(0xe40c292c);
    expect(hash({ instructions: 'foobar' })).toBe(0xbf9cf968);
  });

  it('is FNV-32a of the UTF-8 text, also for repeated prompts in any order', () => {
    const prompts = fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { minLength: 1 });
    fc.assert(
      fc.property(prompts, fc.array(fc.nat(), { maxLength: 60 }), (texts, order) => {
        const hasher = createPrefixHasher();
        for (const number of order) {
          const text = texts[number % texts.length] ?? '';
          expect(hasher({ instructions: text })).toBe(reference(text));
        }
      }),
    );
  });
});
