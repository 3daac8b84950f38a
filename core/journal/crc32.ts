/**
 * CRC-32 (IEEE 802.3, reflected, as in gzip) of `bytes[start, end)`, as an unsigned number. A port:
 * rooms that may use a native implementation pass it to the readers and writers of frames.
 */
export type Crc32 = (bytes: Uint8Array, start: number, end: number) => number;

const POLYNOMIAL = 0xedb88320;
/** Eight tables of 256: table k advances a byte that lies k bytes before the end of a group of eight. */
const TABLES = makeTables();

/** The pure {@link Crc32}: slicing by eight, no dependencies. */
export const crc32: Crc32 = (bytes, start, end) => {
  const t = TABLES;
  let crc = -1;
  let i = start;
  for (; i + 8 <= end; i += 8) {
    const low = crc ^ word(bytes, i);
    const high = word(bytes, i + 4);
    crc =
      (t[1792 + (low & 255)] as number) ^
      (t[1536 + ((low >>> 8) & 255)] as number) ^
      (t[1280 + ((low >>> 16) & 255)] as number) ^
      (t[1024 + (low >>> 24)] as number) ^
      (t[768 + (high & 255)] as number) ^
      (t[512 + ((high >>> 8) & 255)] as number) ^
      (t[256 + ((high >>> 16) & 255)] as number) ^
      (t[high >>> 24] as number);
  }
  for (; i < end; i++) crc = (t[(crc ^ (bytes[i] as number)) & 255] as number) ^ (crc >>> 8);
  return ~crc >>> 0;
};

function word(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

function makeTables(): Int32Array {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let at = 256; at < tables.length; at++) {
    const previous = tables[at - 256] as number;
    tables[at] = (tables[previous & 255] as number) ^ (previous >>> 8);
  }
  return tables;
}
