import { STOP_CAUSES, type StopCause } from '../batch/status';
import { NightshiftError } from '../errors';
import { isJsonObject } from '../openai/json-object';

/**
 * What the result files of a batch are made from; written once (docs/design/journal.md#manifest). Output
 * bytes, counts, usage and file ids are a pure function of the manifest and the input.
 */
export interface Manifest {
  readonly version: 1;
  /** The nonce of the plan that the seals belong to. */
  readonly nonce: string;
  /** Why lines may be unanswered; null means that every routed line is answered. */
  readonly cause: StopCause | null;
  readonly seals: readonly ManifestSeal[];
  /** Unix seconds. */
  readonly closed_at: number;
}

/** A seal or rest object that the merge reads; `size` in bytes. */
export interface ManifestSeal {
  readonly key: string;
  readonly size: number;
}

/** The manifest as JSON. Seals are in key order, because their position is their rank in the merge. */
export function encodeManifest(manifest: Manifest): Buffer {
  const { version, nonce, cause, closed_at } = manifest;
  const seals = manifest.seals
    .map(({ key, size }) => ({ key, size }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  return Buffer.from(JSON.stringify({ version, nonce, cause, seals, closed_at }));
}

/** @throws object_corrupt if the bytes are not a manifest of a version that this code reads */
export function parseManifest(bytes: Buffer): Manifest {
  const value = parseJson(bytes);
  if (!isManifest(value)) throw corrupt();
  return value;
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw corrupt(error);
  }
}

type ManifestMembers = Partial<Record<keyof Manifest, unknown>>;

function isManifest(value: unknown): value is Manifest {
  if (!isJsonObject(value)) return false;
  const { version, nonce, cause, seals, closed_at }: ManifestMembers = value;
  return (
    version === 1 &&
    typeof nonce === 'string' &&
    (cause === null || (STOP_CAUSES as readonly unknown[]).includes(cause)) &&
    typeof closed_at === 'number' &&
    Array.isArray(seals) &&
    seals.every(isSeal)
  );
}

function isSeal(value: unknown): value is ManifestSeal {
  if (!isJsonObject(value)) return false;
  const { key, size }: Partial<Record<keyof ManifestSeal, unknown>> = value;
  return typeof key === 'string' && Number.isSafeInteger(size);
}

function corrupt(cause?: unknown): NightshiftError {
  const message = 'the manifest of the batch is damaged or has an unknown version';
  return new NightshiftError('object_corrupt', message, { cause });
}
