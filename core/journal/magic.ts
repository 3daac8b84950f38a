/**
 * The 16 bytes at the head of every journal object (execution §6): magic (4), version u16,
 * flags u16, 8 zero bytes. Integers are little-endian.
 */
export const OBJECT_HEADER_BYTES = 16;
export const JOURNAL_VERSION = 1;

/** `NSJ1` of a segment, `NSS1` of a seal. */
export const MAGIC = { segment: 'NSJ1', seal: 'NSS1' } as const;
export type Magic = (typeof MAGIC)[keyof typeof MAGIC];

/** A fresh header. */
export function encodeObjectHeader(magic: Magic): Buffer {
  const header = Buffer.alloc(OBJECT_HEADER_BYTES);
  header.write(magic, 0, 'latin1');
  header.writeUInt16LE(JOURNAL_VERSION, 4);
  return header;
}

/** Whether `bytes` begin with a whole header of this kind and of a version that this code reads. */
export function hasObjectHeader(bytes: Buffer, magic: Magic): boolean {
  return (
    bytes.length >= OBJECT_HEADER_BYTES &&
    bytes.compare(encodeObjectHeader(magic), 0, OBJECT_HEADER_BYTES, 0, OBJECT_HEADER_BYTES) === 0
  );
}
