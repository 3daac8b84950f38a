/** 64 short words: six bits of a hash choose one. */
const WORDS = (
  'night shift lamp quiet river stone paper engine copper window morning signal garden winter ' +
  'ladder harbor silver thread candle bridge forest mirror basket anchor marble velvet meadow ' +
  'cinder lantern orchard pebble ribbon saddle timber valley willow amber beacon canyon dawn ' +
  'ember fable glacier hollow island jasper kettle linen moss nectar opal prairie quartz raven ' +
  'saffron tundra umber violet walnut yarrow zephyr alder birch cedar'
).split(' ');

/** The next number after `state` in a fixed pseudo-random sequence (xorshift32); never 0. */
export function nextNumber(state: number): number {
  let next = state === 0 ? 0x9e3779b9 : state;
  next ^= next << 13;
  next ^= next >>> 17;
  next ^= next << 5;
  return next >>> 0;
}

/** A text that is determined by its seed, word by word: one word per token. */
export class WordSequence {
  #state: number;
  #isFirst = true;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** The next `count` words, each after a blank, except for the first word of all. */
  take(count: number): string {
    let text = '';
    for (let i = 0; i < count; i++) {
      this.#state = nextNumber(this.#state);
      text += (this.#isFirst ? '' : ' ') + (WORDS[this.#state & 63] ?? '');
      this.#isFirst = false;
    }
    return text;
  }
}

/** Characters that are estimated to make one token. */
export const CHARACTERS_PER_TOKEN = 4;

/** Estimated tokens of a text. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}
