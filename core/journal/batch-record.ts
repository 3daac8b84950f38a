import { NightshiftError } from '../errors';
import { isJsonObject } from '../openai/json-object';

/**
 * What the object store knows of a batch's row, so that a batch survives the loss of its row: a database
 * that is restored from a backup lacks the rows of all later batches (docs/design/journal.md#batch-record).
 * Times are Unix seconds.
 */
export interface BatchRecord {
  readonly version: 1;
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly input_file_id: string;
  readonly input_object_key: string | null;
  readonly input_bytes: number | null;
  readonly completion_window: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly output_expires_after: number | null;
  readonly passes_headers: boolean;
  readonly created_at: number;
  readonly expires_at: number;
}

/** The record as JSON. */
export function encodeBatchRecord(record: BatchRecord): Buffer {
  return Buffer.from(JSON.stringify(record));
}

/** @throws object_corrupt if the bytes are not a record of a version that this code reads */
export function parseBatchRecord(bytes: Buffer): BatchRecord {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (isRecord(value)) return value as BatchRecord;
  } catch (cause) {
    throw new NightshiftError('object_corrupt', MESSAGE, { cause });
  }
  throw new NightshiftError('object_corrupt', MESSAGE);
}

const MESSAGE = 'the record of a batch is damaged, or was written by a later release';
const TEXTS = ['id', 'tenant', 'endpoint', 'input_file_id', 'completion_window'] as const;

function isRecord(value: unknown): boolean {
  if (!isJsonObject(value) || value['version'] !== 1) return false;
  return (
    TEXTS.every((name) => typeof value[name] === 'string') &&
    Number.isSafeInteger(value['created_at']) &&
    Number.isSafeInteger(value['expires_at']) &&
    typeof value['passes_headers'] === 'boolean'
  );
}
