import { createHash } from 'node:crypto';
import { NightshiftError } from '../../core/errors';
import { uploadPartKey } from '../../core/names/object-names';
import type { JoinInspector, ObjectStore } from '../../storage/object-store';
import type { PartRecord } from '../../storage/postgres/uploads';
import { createUploadInspector, type UploadFacts } from './upload-inspector';

/** Facts about the bytes of all parts together. */
export interface JoinedFacts extends UploadFacts {
  /** Lower-case hexadecimal; null if it was not asked for. */
  readonly md5: string | null;
}

/** Which parts to join, and where the result goes. */
export interface JoinOptions {
  readonly store: Pick<ObjectStore, 'concatenate'>;
  /** In the order of the file. */
  readonly parts: readonly PartRecord[];
  /** A key that no other request uses. */
  readonly objectKey: string;
  readonly withMd5: boolean;
  readonly maxLineBytes: number;
  /** Sees all bytes in their order. */
  readonly onBytes: (chunk: Buffer) => void;
  /** Called with the facts before there is an object. If it throws, there is none. */
  check(facts: JoinedFacts): void;
}

/**
 * Makes one object of the parts and inspects them on the way, as if they were one file. A crash or an error
 * leaves no object (docs/design/api-contract.md#complete-an-upload).
 *
 * @throws object_missing, object_corrupt, object_store_failed, and what `check` throws
 */
export async function joinParts(options: JoinOptions): Promise<JoinedFacts> {
  const { store, parts, objectKey, check } = options;
  const keys = parts.map((part) => uploadPartKey(part.uploadId, part.id));
  const inspector = createPartsInspector(options);
  let facts: JoinedFacts | undefined;
  const finish = (): void => {
    facts = inspector.finish();
    check(facts);
  };
  const result = await store.concatenate(objectKey, keys, { update: inspector.update, finish });
  if (result === 'created' && facts !== undefined) return facts;
  throw new NightshiftError('internal', `${objectKey} exists`);
}

interface PartsInspector extends Pick<JoinInspector, 'update'> {
  /** @throws object_corrupt if a part has another size than its row says */
  finish(): JoinedFacts;
}

function createPartsInspector({
  parts,
  withMd5,
  maxLineBytes,
  onBytes,
}: Pick<JoinOptions, 'parts' | 'withMd5' | 'maxLineBytes' | 'onBytes'>): PartsInspector {
  const inspector = createUploadInspector(maxLineBytes);
  const md5 = withMd5 ? createHash('md5') : null;
  const found = parts.map(() => 0);
  return {
    update: (chunk, part) => {
      found[part] = (found[part] ?? 0) + chunk.length;
      inspector.update(chunk);
      md5?.update(chunk);
      onBytes(chunk);
    },
    finish: () => {
      for (const [i, { id, bytes }] of parts.entries()) {
        if (found[i] === bytes) continue;
        const message = `part ${id} has ${found[i]} bytes instead of ${bytes}`;
        throw new NightshiftError('object_corrupt', message);
      }
      return { ...inspector.finish(), md5: md5?.digest('hex') ?? null };
    },
  };
}
