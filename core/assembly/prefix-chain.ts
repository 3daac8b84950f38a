/** The chain of a prompt, as core/plan/prefix-chain.ts computes it, in ranges of bytes that are taken one after the other. */
const BLOCK_BYTES: usize = 256;
const MAX_BLOCKS: u32 = 256;
const STRIPE_BYTES: usize = 64;
const PRIME_1: u32 = 0x9e3779b1;
const PRIME_2: u32 = 0x85ebca77;
/** A block that spans two ranges. */
const JOINED: usize = 3584;

/** Where the blocks of the prompt are stored. */
let blocks: usize = 0;
/** How many there are. */
export let chainLength: u32 = 0;

let hash: u32 = 0;
let joined: usize = 0;

/** Begins a prompt whose blocks are stored from `target` on. */
export function beginChain(target: usize): void {
  blocks = target;
  chainLength = 0;
  hash = 0;
  joined = 0;
}

/** Takes the next range of the prompt, which is not the last one. */
export function addRange(from: usize, to: usize): void {
  const at = addBlocks(from, to);
  memory.copy(JOINED + joined, at, to - at);
  joined += to - at;
}

/** Takes the last range. Its rest is in no block. */
export function addLastRange(from: usize, to: usize): void {
  addBlocks(from, to);
}

/** Adds all whole blocks. Returns where the rest of the range begins, which is to be joined with what is left over. */
function addBlocks(from: usize, to: usize): usize {
  let at = from;
  if (joined > 0) {
    const missing = BLOCK_BYTES - joined;
    if (to - at < missing) return at;
    memory.copy(JOINED + joined, at, missing);
    at += missing;
    joined = 0;
    addBlock(JOINED);
  }
  for (; at + BLOCK_BYTES <= to; at += BLOCK_BYTES) addBlock(at);
  return at;
}

/** Each block is hashed with the hash of the block before it as its seed. */
function addBlock(from: usize): void {
  if (chainLength === MAX_BLOCKS) return;
  let a = hash + PRIME_1;
  let b = hash + PRIME_2;
  let c = hash;
  let d = hash - PRIME_1;
  for (let at = from; at < from + BLOCK_BYTES; at += STRIPE_BYTES) {
    a = round(a, load<u32>(at));
    b = round(b, load<u32>(at, 16));
    c = round(c, load<u32>(at, 32));
    d = round(d, load<u32>(at, 48));
  }
  hash = rotl<u32>(a, 1) + rotl<u32>(b, 7) + rotl<u32>(c, 12) + rotl<u32>(d, 18);
  store<u32>(blocks + <usize>chainLength * 4, hash);
  chainLength++;
}

function round(lane: u32, word: u32): u32 {
  return (rotl<u32>(lane, 5) ^ word) * PRIME_1;
}
