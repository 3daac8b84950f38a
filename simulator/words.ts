/** 64 short words: six bits of a hash choose one. */
const WORDS = (
  'night shift lamp quiet river stone paper engine copper window morning signal garden winter ' +
  'ladder harbor silver thread candle bridge forest mirror basket anchor marble velvet meadow ' +
  'cinder lantern orchard pebble ribbon saddle timber valley willow amber beacon canyon dawn ' +
  'ember fable glacier hollow island jasper kettle linen moss nectar opal prairie quartz raven ' +
  'saffron tundra umber violet walnut yarrow zephyr alder birch cedar'
).split(' ');

/** FNV-1a with 32 bits. */
export function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) {
    hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  }
  return hash >>> 0;
}

/** The next number after `state` in a fixed pseudo-random sequence (xorshift32); never 0. */
export function nextNumber(state: number): number {
  let next = state === 0 ? 0x9e3779b9 : state;
  next ^= next << 13;
  next ^= next >>> 17;
  next ^= next << 5;
  return next >>> 0;
}

/** A text of `count` words, determined by `seed`. */
export function wordsFrom(seed: number, count: number): string {
  let state = seed;
  let text = '';
  for (let i = 0; i < count; i++) {
    state = nextNumber(state);
    text += (i === 0 ? '' : ' ') + (WORDS[state & 63] ?? '');
  }
  return text;
}

/** Estimated tokens of a text: one per four characters. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / 4);
}
