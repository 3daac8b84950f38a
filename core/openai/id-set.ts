/** A set of strings in a few bytes more than their own: a million ids of 20 characters take 40 MB. */
export interface IdSet {
  readonly size: number;
  /** False where the very same string was added before. */
  add(id: string): boolean;
}

const FIRST_SLOTS = 1024;
const FIRST_BYTES = 16 * 1024;
const PRIME = 0x01000193;
/** Begins a code unit that is not ASCII; the two bytes of the unit follow. */
const WIDE = 0xff;
const WIDE_BYTES = 3;

/**
 * An empty set. Ids lie one after the other in one buffer, found through an open-addressed table of
 * their numbers, so membership is exact. `seed` is random: nobody can choose ids that all collide.
 */
export function createIdSet(seed: number): IdSet {
  let bytes: Buffer = Buffer.allocUnsafe(FIRST_BYTES);
  /** Where id number i begins; one more than there are ids. */
  let starts = new Uint32Array(FIRST_SLOTS / 2 + 1);
  let hashes = new Uint32Array(FIRST_SLOTS / 2);
  /** Number of the id + 1, 0 for a free slot; never more than half full. */
  let slots = new Uint32Array(FIRST_SLOTS);
  let size = 0;

  function grow(): void {
    starts = copied(starts, 2 * hashes.length + 1);
    hashes = copied(hashes, 2 * hashes.length);
    slots = new Uint32Array(2 * slots.length);
    for (let i = 0; i < size; i++) slots[freeSlot(slots, hashes[i] ?? 0)] = i + 1;
  }

  /** The slot that holds the id, or the free one where it belongs. */
  function slotOf(hash: number, start: number, end: number): number {
    for (let slot = hash % slots.length; ; slot = (slot + 1) % slots.length) {
      const number = slots[slot] ?? 0;
      if (number === 0) return slot;
      if (hashes[number - 1] !== hash) continue;
      if (bytes.compare(bytes, start, end, starts[number - 1], starts[number]) === 0) return slot;
    }
  }

  return {
    get size() {
      return size;
    },
    add(id) {
      const start = starts[size] ?? 0;
      if (start + WIDE_BYTES * id.length > bytes.length) {
        bytes = Buffer.concat([bytes], 2 * bytes.length + WIDE_BYTES * id.length);
      }
      const end = writeId(bytes, start, id);
      const hash = hashOf(bytes, start, end, seed);
      const slot = slotOf(hash, start, end);
      if (slots[slot] !== 0) return false;
      slots[slot] = size + 1;
      hashes[size] = hash;
      starts[++size] = end;
      if (size === hashes.length) grow();
      return true;
    },
  };
}

/** Writes code units so that no two strings look alike, lone surrogates included. Returns the end. */
function writeId(bytes: Buffer, start: number, id: string): number {
  let at = start;
  for (let i = 0; i < id.length; i++) {
    const unit = id.charCodeAt(i);
    if (unit < 0x80) {
      bytes[at++] = unit;
      continue;
    }
    bytes[at++] = WIDE;
    bytes[at++] = unit >>> 8;
    bytes[at++] = unit & 0xff;
  }
  return at;
}

function hashOf(bytes: Buffer, start: number, end: number, seed: number): number {
  let hash = seed;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), PRIME);
  // The low bits choose the slot: let the high ones have a say.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

function freeSlot(slots: Uint32Array, hash: number): number {
  let slot = hash % slots.length;
  while (slots[slot] !== 0) slot = (slot + 1) % slots.length;
  return slot;
}

function copied(from: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(length);
  larger.set(from);
  return larger;
}
