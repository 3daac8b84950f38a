/**
 * CRC-32 (IEEE 802.3, reflected, as in gzip) of all bytes, as an unsigned number. A port: core has no
 * I/O and no Node modules, so callers pass `crc32` of `node:zlib`, which is ten times faster than
 * JavaScript.
 */
export type Crc32 = (bytes: Uint8Array) => number;
