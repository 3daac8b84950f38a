import type { PromptBytes } from '../openai/prompt-bytes';

/** A hash is recorded after each block of this many bytes. */
export const CHAIN_BLOCK_BYTES = 256;
/** Longer prompts are compared by their first 64 KiB. */
const MAX_BLOCKS = 256;
/** Each lane takes the first four of 16 bytes. */
const STRIPE_BYTES = 64;
const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;

/**
 * The chain of one prompt: rolling 32-bit hashes of its bytes, one after each 256 bytes. Two prompts with
 * equal hashes up to block `n` begin with the same `256 n` bytes (docs/design/batch-path.md#order-of-sending).
 * Prompts are compared by their bytes because every model has a tokenizer of its own.
 *
 * It is a guess. Only four of each 16 bytes are hashed, because all of them would take four times as long. Texts that differ in a few bytes may look alike, which costs a miss in the cache of a model
 * server and nothing else.
 */
export interface PrefixChain {
  /** Those of the prompt are `length` blocks from `from` on. They are valid until the next prompt is read. */
  readonly blocks: Uint32Array;
  readonly from: number;
  /** Whole blocks of the prompt, at most 256; a shorter rest is not recorded. */
  readonly length: number;
}

/** Computes the chain of a prompt. */
export type ChainReader = (prompt: PromptBytes) => PrefixChain;

/**
 * A function that computes chains in one buffer. Each block is hashed with the hash of the block before it as
 * its seed. Four lanes of FxHash (the hash of Firefox and rustc) take turns. They are independent of each
 * other, so a processor works on all of them at once.
 */
export function createChainReader(): ChainReader {
  const reader = new BufferedChain();
  return (prompt) => reader.read(prompt);
}

class BufferedChain implements PrefixChain {
  readonly blocks = new Uint32Array(MAX_BLOCKS);
  readonly from = 0;
  length = 0;
  /** Of the buffer that the latest prompt was in. A new view for each line costs more than its hashes. */
  #view: DataView = new DataView(new ArrayBuffer(0));
  /** The block that spans two ranges. */
  readonly #joined = new Uint8Array(CHAIN_BLOCK_BYTES);
  readonly #joinedView = new DataView(this.#joined.buffer);

  read({ bytes, ranges }: PromptBytes): PrefixChain {
    this.length = 0;
    if (this.#view.buffer !== bytes.buffer) this.#view = new DataView(bytes.buffer);
    let joined = 0;
    for (let i = 0; i + 1 < ranges.length && this.length < MAX_BLOCKS; i += 2) {
      const to = ranges[i + 1] ?? 0;
      let from = ranges[i] ?? 0;
      if (joined > 0) {
        const taken = Math.min(to - from, CHAIN_BLOCK_BYTES - joined);
        this.#joined.set(bytes.subarray(from, from + taken), joined);
        joined += taken;
        from += taken;
        if (joined < CHAIN_BLOCK_BYTES) continue;
        this.blocks[this.length] = hashBlock(this.#joinedView, 0, this.#last());
        this.length++;
      }
      from = this.#takeBlocks(bytes, from, to);
      // The rest of the last range is in no block. Its copy would cost a third of the hashes.
      if (i + 3 >= ranges.length) break;
      joined = to - from;
      if (joined < CHAIN_BLOCK_BYTES) this.#joined.set(bytes.subarray(from, to));
    }
    return this;
  }

  /** Hashes whole blocks. Returns where the rest begins. */
  #takeBlocks({ byteOffset }: Buffer, from: number, to: number): number {
    const { blocks } = this;
    const whole = Math.floor((to - from) / CHAIN_BLOCK_BYTES);
    const taken = Math.min(whole, MAX_BLOCKS - this.length);
    let hash = this.#last();
    for (let i = 0; i < taken; i++) {
      hash = hashBlock(this.#view, byteOffset + from + i * CHAIN_BLOCK_BYTES, hash);
      blocks[this.length + i] = hash;
    }
    this.length += taken;
    return from + taken * CHAIN_BLOCK_BYTES;
  }

  /** The hash of the prompt up to here, which seeds the next block. */
  #last(): number {
    return this.length === 0 ? 0 : (this.blocks[this.length - 1] ?? 0) | 0;
  }
}

function hashBlock(view: DataView, from: number, seed: number): number {
  let a = (seed + PRIME_1) | 0;
  let b = (seed + PRIME_2) | 0;
  let c = seed;
  let d = (seed - PRIME_1) | 0;
  for (let at = from; at < from + CHAIN_BLOCK_BYTES; at += STRIPE_BYTES) {
    a = round(a, view.getInt32(at, true));
    b = round(b, view.getInt32(at + 16, true));
    c = round(c, view.getInt32(at + 32, true));
    d = round(d, view.getInt32(at + 48, true));
  }
  return (rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18)) | 0;
}

function round(lane: number, word: number): number {
  return Math.imul(rotated(lane, 5) ^ word, PRIME_1);
}

function rotated(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
