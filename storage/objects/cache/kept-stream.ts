import { pipeline, Transform, type Readable } from 'node:stream';
import { KeptPages } from './kept-pages';
import type { PageTable } from './page-table';

/** Several chunks of a connection: with fewer, the source would stop after each of them. */
const HIGH_WATER_BYTES = 1024 * 1024;

/**
 * The same stream, the first `bytes` of which are kept as pages of `key`. What the disk cannot take in time is
 * not kept. Destroying it destroys the source.
 */
export function keptStream(
  source: Readable,
  {
    table,
    key,
    bytes,
  }: { readonly table: PageTable; readonly key: string; readonly bytes: number },
): Readable {
  const pages = new KeptPages(table, key);
  let passed = 0;
  const kept = new Transform({
    highWaterMark: HIGH_WATER_BYTES,
    transform(piece: Buffer, _encoding, done) {
      if (passed < bytes) pages.add(piece);
      passed += piece.length;
      done(null, piece);
    },
    flush(done) {
      if (passed < bytes) pages.end();
      // Who reads the object next finds its last pages too.
      void pages.written().then(() => done());
    },
  });
  // Errors arrive on the stream that is returned.
  return pipeline(source, kept, () => undefined);
}
