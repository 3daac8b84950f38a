import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { hasS3Objects } from './s3-component';

/** Where a stack keeps its objects: in a folder, or in the embedded S3 server. */
export type StoreKind = 'filesystem' | 's3';

/** What decides the kind of a stack's object store. */
export interface StoreChoice {
  /** Data directory of the stack, and its folders of both kinds. */
  readonly dir: { readonly path: string; readonly objects: string; readonly s3: string };
  /** The flag `--store`, if it was given. */
  readonly wanted: StoreKind | undefined;
  /** Whether the settings name an object store. */
  readonly isConfigured: boolean;
}

/**
 * The kind of store that the stack embeds; null if the settings name another one. Without the flag, a data
 * directory keeps the kind that it began with. @throws config_invalid if the flag contradicts either
 */
export function chooseStore({ dir, wanted, isConfigured }: StoreChoice): StoreKind | null {
  if (isConfigured) {
    if (wanted === undefined) return null;
    const message = `--store ${wanted} is given, but object_store.type is set: remove one of the two`;
    throw new NightshiftError('config_invalid', message);
  }
  const used = usedStore(dir);
  if (wanted !== undefined && used !== null && wanted !== used) {
    const message = `${dir.path} already has its objects in the store ${used}: leave out --store, or choose another --data-dir`;
    throw new NightshiftError('config_invalid', message);
  }
  return wanted ?? used ?? 'filesystem';
}

/** The filesystem store notes its id when it is opened, the S3 server gets its key. */
function usedStore({ objects, s3 }: StoreChoice['dir']): StoreKind | null {
  if (existsSync(join(objects, 'store-id'))) return 'filesystem';
  return hasS3Objects(s3) ? 's3' : null;
}
