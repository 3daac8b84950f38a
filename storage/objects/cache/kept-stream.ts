import { pipeline, Transform, type Readable } from 'node:stream';
import { KeptPages } from './kept-pages';
import type { PageTable } from './page-table';

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
