import { CHARACTERS_PER_TOKEN } from '../words';
import { BLOCK_TOKENS } from './prefix-cache';

const BLOCK_CHARACTERS = BLOCK_TOKENS * CHARACTERS_PER_TOKEN;
const PRIME = 0x01000193;
/** FNV-1a's offset, and another odd number for a second, independent hash. */
const OFFSETS = [0x811c9dc5, 0x9e3779b1] as const;

/**
 * Names of the complete blocks of a prompt, from the front. Two prompts have the same name at an index only
 * if they agree up to the end of that block, except for collisions of 53-bit hashes.
 *
 * @param text the prompt, after whatever else must be equal for a cache hit, such as the model
 * @param maxBlocks how many blocks the prompt has at most
 */
export function blocksOf(text: string, maxBlocks: number): number[] {
  const count = Math.min(maxBlocks, Math.floor(text.length / BLOCK_CHARACTERS));
  const blocks: number[] = [];
  let [a, b]: [number, number] = [...OFFSETS];
  for (let i = 0; i < count * BLOCK_CHARACTERS; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, PRIME);
    b = Math.imul(b ^ unit, PRIME);
    if ((i + 1) % BLOCK_CHARACTERS === 0) blocks.push((a >>> 11) * 2 ** 32 + (b >>> 0));
  }
  return blocks;
}
