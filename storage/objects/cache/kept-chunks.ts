import { KeptPages } from './kept-pages';
import type { PageTable } from './page-table';

/** Which chunks are kept, and where. */
export interface ChunksToKeep {
  readonly table: PageTable;
  readonly key: string;
  /** From the first one on. */
  readonly bytes: number;
}

/** The same chunks, the first `bytes` of which are kept as pages of `key`. */
export async function* keptChunks(
  chunks: AsyncIterable<Buffer>,
  { table, key, bytes }: ChunksToKeep,
): AsyncGenerator<Buffer> {
  const pages = new KeptPages(table, key);
  let passed = 0;
  for await (const chunk of chunks) {
    if (passed < bytes) await pages.add(chunk);
    passed += chunk.length;
    yield chunk;
  }
  if (passed < bytes) pages.end();
  // Who reads the object next finds its last pages too.
  await pages.written();
}
