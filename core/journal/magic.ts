/**
 * The 16 bytes at the start of every journal object: magic (4), version u16, flags u16, 8 zero bytes.
 * Integers are little-endian (docs/design/journal.md#segments).
 */
export const OBJECT_HEADER_BYTES = 16;
const JOURNAL_VERSION = 1;

/** `NSJ1` of a segment, `NSS1` of a seal. */
export const MAGIC = { segment: 'NSJ1', seal: 'NSS1' } as const;
export type Magic = (typeof MAGIC)[keyof typeof MAGIC];

/** The header of a new object. */
export function encodeObjectHeader(magic: Magic): Buffer {
  const header = Buffer.alloc(OBJECT_HEADER_BYTES);
  header.write(magic, 0, 'latin1');
  header.writeUInt16LE(JOURNAL_VERSION, 4);
  return header;
}

/** Whether `bytes` start with a complete header of this kind, in a version that this code reads. */
export function hasObjectHeader(bytes: Buffer, magic: Magic): boolean {
  return (
    bytes.length >= OBJECT_HEADER_BYTES &&
    bytes.compare(encodeObjectHeader(magic), 0, OBJECT_HEADER_BYTES, 0, OBJECT_HEADER_BYTES) === 0
  );
}
