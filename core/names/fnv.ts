const OFFSET_32 = 0x811c9dc5;
const PRIME_32 = 0x01000193;
const OFFSET_64 = 0xcbf29ce484222325n;
const PRIME_64 = 0x100000001b3n;

/** FNV-32a of bytes, as an unsigned integer. */
export function fnv32a(bytes: Uint8Array): number {
  let hash = OFFSET_32;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), PRIME_32);
  return hash >>> 0;
}

/** FNV-64a of a text's UTF-16 code units (low byte first), as 16 hex digits. For short names only. */
export function fnv64Hex(text: string): string {
  let hash = OFFSET_64;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    hash = BigInt.asUintN(64, (hash ^ BigInt(unit & 0xff)) * PRIME_64);
    hash = BigInt.asUintN(64, (hash ^ BigInt(unit >>> 8)) * PRIME_64);
  }
  return hash.toString(16).padStart(16, '0');
}
