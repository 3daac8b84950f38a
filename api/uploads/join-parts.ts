import { createHash } from 'node:crypto';
import { NightshiftError } from '../../core/errors';
import { uploadPartKey } from '../../core/names/object-names';
import type { ObjectStore } from '../../storage/object-store';
import type { PartRecord } from '../../storage/postgres/uploads';
import { createUploadInspector, type UploadFacts } from './upload-inspector';

/** Facts about the bytes of all parts together. */
export interface JoinedFacts extends UploadFacts {
  /** Lower-case hexadecimal; null if it was not asked for. */
  readonly md5: string | null;
}

/** Which parts to inspect. */
export interface InspectOptions {
  readonly store: Pick<ObjectStore, 'stream'>;
  /** In the order of the file. */
  readonly parts: readonly PartRecord[];
  readonly withMd5: boolean;
  readonly maxLineBytes: number;
}

/** Which parts to join, and where the result goes. */
export interface JoinOptions {
  readonly store: Pick<ObjectStore, 'concatenate'>;
  /** In the order of the file. */
  readonly parts: readonly PartRecord[];
  /** A key that no other request uses. */
  readonly objectKey: string;
}

/**
 * Reads the parts in order, as if they were one file. Parts never change, so what is found here holds for
 * the file that {@link joinParts} makes of them.
 *
 * @throws object_missing, object_corrupt, object_store_failed
 */
export async function inspectParts(options: InspectOptions): Promise<JoinedFacts> {
  const { store, parts, withMd5, maxLineBytes } = options;
  const inspector = createUploadInspector(maxLineBytes);
  const md5 = withMd5 ? createHash('md5') : null;
  for (const part of parts) {
    for await (const chunk of wholePart(store, part)) {
      inspector.update(chunk);
      md5?.update(chunk);
    }
  }
  return { ...inspector.finish(), md5: md5?.digest('hex') ?? null };
}

/**
 * Makes one object of the parts. A crash or an error leaves no object.
 *
 * @throws object_missing, object_store_failed
 */
export async function joinParts({ store, parts, objectKey }: JoinOptions): Promise<void> {
  const keys = parts.map((part) => uploadPartKey(part.uploadId, part.id));
  const result = await store.concatenate(objectKey, keys);
  if (result === 'exists') throw new NightshiftError('internal', `${objectKey} exists`);
}

async function* wholePart(
  store: InspectOptions['store'],
  part: PartRecord,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of store.stream(uploadPartKey(part.uploadId, part.id))) {
    bytes += (chunk as Buffer).length;
    yield chunk as Buffer;
  }
  if (bytes === part.bytes) return;
  const message = `part ${part.id} has ${bytes} bytes instead of ${part.bytes}`;
  throw new NightshiftError('object_corrupt', message);
}
