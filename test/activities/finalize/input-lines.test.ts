import { InputLines } from '../../../activities/finalize/input-lines';
import { NightshiftError } from '../../../core/errors';
import { createMemoryStore } from '../../support/memory-store';

it('finds input lines that are longer than the window, after it, or last without a newline', async () => {
  const store = createMemoryStore();
  const sizes = [10, 300_000, 200_000, 20, 700_000, 5, 260_000, 7];
  const lines = sizes.map((size, i) => {
    return JSON.stringify({ custom_id: `id-${i}`, body: { text: 'x'.repeat(size) } });
  });
  await store.putIfAbsent('input', Buffer.from(lines.join('\n')));
  const input = new InputLines(await store.open('input'));
  let offset = 0;
  for (const [i, line] of lines.entries()) {
    if (!input.holds(offset)) await input.load(offset);
    expect(input.holds(offset)).toBe(true);
    expect(input.customId(offset)).toBe(`id-${i}`);
    offset += line.length + 1;
  }
  await input.close();
});

it('fails with an error that is worth another attempt if the input is deleted while it is read', async () => {
  const store = createMemoryStore();
  await store.putIfAbsent('input', Buffer.from('{}\n'));
  const reader = await store.open('input');
  const read = () => Promise.reject(new NightshiftError('object_missing', 'it is gone'));
  const input = new InputLines({ ...reader, read });
  await expect(input.load(0)).rejects.toMatchObject({
    code: 'object_store_failed',
    retryable: true,
  });
});
