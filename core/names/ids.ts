/**
 * Ids of API objects: opaque, with a prefix for the type (docs/design/api-contract.md#ids-and-times).
 * The caller passes random bytes, because core has no source of randomness.
 */
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `batch_` and 32 hex digits, from 16 random bytes. */
export function batchIdFromBytes(random: Uint8Array): string {
  return `batch_${hex(expectBytes(random, 16))}`;
}

/** `file-` and 22 alphanumerics, from 16 random bytes. */
export function fileIdFromBytes(random: Uint8Array): string {
  return `file-${base62(hex(expectBytes(random, 16)))}`;
}

/** `upload_` and 32 hex digits, from 16 random bytes. */
export function uploadIdFromBytes(random: Uint8Array): string {
  return `upload_${hex(expectBytes(random, 16))}`;
}

/** `part_` and 32 hex digits, from 16 random bytes. */
export function partIdFromBytes(random: Uint8Array): string {
  return `part_${hex(expectBytes(random, 16))}`;
}

/**
 * Id of a result file: a pure function of the batch and the kind, so that a second finalization produces
 * the same ids. It is one character longer than the id of an uploaded file, so they never collide.
 */
export function resultFileId(batchId: string, kind: ResultKind): string {
  return `file-${base62(batchHex(batchId))}${kind === 'output' ? 'o' : 'e'}`;
}

/** The inverse of {@link resultFileId}; null for the id of any other file. */
export function batchOfResultFile(fileId: string): string | null {
  const digits = /^file-([0-9A-Za-z]{22})[oe]$/.exec(fileId)?.[1];
  if (digits === undefined) return null;
  let value = 0n;
  for (const digit of digits) value = value * 62n + BigInt(BASE62.indexOf(digit));
  return value >> 128n === 0n ? `batch_${value.toString(16).padStart(32, '0')}` : null;
}

/** The two result files of a batch. */
export type ResultKind = 'output' | 'error';

/** The `filename` of a result file (docs/design/api-contract.md#result-file-names). */
export function resultFileName(batchId: string, kind: ResultKind): string {
  return `${batchId}_${kind}.jsonl`;
}

/** `batch_req_`, the batch's hex digits, and the line's byte offset as 12 hex digits. */
export function lineId(batchId: string, offset: number): string {
  return `batch_req_${batchHex(batchId)}${offset.toString(16).padStart(12, '0')}`;
}

/** The 32 hex digits of a batch id. */
function batchHex(batchId: string): string {
  return batchId.slice('batch_'.length);
}

function hex(bytes: Uint8Array): string {
  let out = '';
  for (const byte of bytes) out += byte.toString(16).padStart(2, '0');
  return out;
}

function base62(hexDigits: string): string {
  let value = BigInt(`0x${hexDigits}`);
  let out = '';
  for (let i = 0; i < 22; i++) {
    out = BASE62.charAt(Number(value % 62n)) + out;
    value /= 62n;
  }
  return out;
}

function expectBytes(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length !== length)
    throw new RangeError(`expected ${length} bytes, got ${bytes.length}`);
  return bytes;
}
