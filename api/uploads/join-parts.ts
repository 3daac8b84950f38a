import { createHash } from 'node:crypto';
import { NightshiftError } from '../../core/errors';
import { uploadPartKey } from '../../core/names/object-names';
import type { ObjectStore } from '../../storage/object-store';
import type { PartRecord } from '../../storage/postgres/uploads';
import { createUploadInspector, type UploadFacts } from './upload-inspector';

/** Facts about the joined bytes. */
export interface JoinedFacts extends UploadFacts {
  /** Lower-case hexadecimal; null if it was not asked for. */
  readonly md5: string | null;
}

/** Which parts to join, and where the result goes. */
export interface JoinOptions {
  readonly store: ObjectStore;
  /** In the order of the file. */
  readonly parts: readonly PartRecord[];
  /** A key that no other request uses. */
  readonly objectKey: string;
  readonly withMd5: boolean;
  readonly maxLineBytes: number;
}

/**
 * Concatenates the parts into one object, streaming. A crash or an error leaves no object.
 *
 * @throws object_missing, object_corrupt, object_store_failed
 */
export async function joinParts(options: JoinOptions): Promise<JoinedFacts> {
  const { store, parts, objectKey, withMd5, maxLineBytes } = options;
  const inspector = createUploadInspector(maxLineBytes);
  const md5 = withMd5 ? createHash('md5') : null;
  async function* joined(): AsyncGenerator<Buffer> {
    for (const part of parts) {
      for await (const chunk of wholePart(store, part)) {
        inspector.update(chunk);
        md5?.update(chunk);
        yield chunk;
      }
    }
  }
  const result = await store.putIfAbsent(objectKey, joined());
  if (result === 'exists') throw new NightshiftError('internal', `${objectKey} exists`);
  return { ...inspector.finish(), md5: md5?.digest('hex') ?? null };
}

async function* wholePart(store: ObjectStore, part: PartRecord): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of store.stream(uploadPartKey(part.uploadId, part.id))) {
    bytes += (chunk as Buffer).length;
    yield chunk as Buffer;
  }
  if (bytes === part.bytes) return;
  const message = `part ${part.id} has ${bytes} bytes instead of ${part.bytes}`;
  throw new NightshiftError('object_corrupt', message);
}
