/**
 * CRC-32 (IEEE 802.3, reflected, as in gzip) of all bytes, as an unsigned number. Callers pass `crc32` of
 * `node:zlib`, because core imports no Node modules; it is ten times faster than JavaScript.
 */
export type Crc32 = (bytes: Uint8Array) => number;
