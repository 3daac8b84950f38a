/**
 * The CRC-32 of bytes from the CRC-32s of their pieces. A checksum is a polynomial over GF(2), its highest power in the
 * lowest bit, and n bytes behind a piece multiply its checksum by x^(8n) modulo the polynomial of CRC-32.
 */
const POLYNOMIAL = 0xedb88320;
/** x^0. */
const ONE = 0x80000000 | 0;
const TOP_BIT = 31;
/** Powers for lengths below this are in a table, because most frames are shorter. */
const TABLE_LENGTHS = 8192;
const TABLE_BITS = 13;

/** What a byte makes of a checksum whose lowest byte it was added to. */
const BYTES = new Int32Array(256).map((_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = timesX(crc);
  return crc;
});
/** x^(8n) for lengths n below {@link TABLE_LENGTHS}. */
const POWERS = new Int32Array(TABLE_LENGTHS);
/** x^(8n) for lengths n of 2^13, 2^14, … 2^30. */
const LARGE_POWERS = new Int32Array(18);
fillPowers();

/** The checksum of a text of checksum `crc` with the bytes `[start, end)` behind it. For a few bytes. */
export function crc32WithBytes(crc: number, bytes: Uint8Array, start: number, end: number): number {
  let state = ~crc;
  for (let at = start; at < end; at++) state = withByte(state ^ (bytes[at] ?? 0));
  return ~state;
}

/** The checksum of a text of checksum `crc` with a piece of checksum `next` and `length` bytes behind it; as signed integer. */
export function crc32Joined(crc: number, next: number, length: number): number {
  let joined = times(crc, POWERS[length & (TABLE_LENGTHS - 1)] ?? 0);
  for (let bits = length >>> TABLE_BITS, i = 0; bits !== 0; bits >>>= 1, i++) {
    if ((bits & 1) !== 0) joined = times(joined, LARGE_POWERS[i] ?? 0);
  }
  return joined ^ next;
}

function withByte(state: number): number {
  return (BYTES[state & 0xff] ?? 0) ^ (state >>> 8);
}

function timesX(value: number): number {
  return (value >>> 1) ^ (POLYNOMIAL & -(value & 1));
}

/** The product of two polynomials. Masks instead of branches: their outcome is random. */
function times(a: number, b: number): number {
  let product = 0;
  let power = b;
  for (let bits = a, i = 0; i <= TOP_BIT; i++) {
    product ^= (bits >> TOP_BIT) & power;
    bits <<= 1;
    power = timesX(power);
  }
  return product;
}

function fillPowers(): void {
  let power = ONE;
  for (let length = 0; length < TABLE_LENGTHS; length++) {
    POWERS[length] = power;
    power = withByte(power);
  }
  for (let i = 0; i < LARGE_POWERS.length; i++) {
    LARGE_POWERS[i] = power;
    power = times(power, power);
  }
}
