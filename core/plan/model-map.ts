import { NightshiftError } from '../errors';
import { isJsonObject } from '../openai/json-object';

/**
 * `model_map.json` (docs/design/journal.md#model-map): which plan counts, and what is in it. The fields are
 * named as in the stored object. Records may have any string as a key, even `__proto__`: build them with
 * `Object.fromEntries`, read them with `Object.entries` or `Object.hasOwn`.
 */
export interface ModelMap {
  readonly version: 1;
  /** 16 hex digits: the name of the folder with the plans. */
  readonly nonce: string;
  /** Requests in the input file, routed or not. */
  readonly line_count: number;
  /** Planned models only. */
  readonly model_to_safe: Readonly<Record<string, string>>;
  readonly safe_to_model: Readonly<Record<string, string>>;
  /** Plan entries by safe model name. */
  readonly entries: Readonly<Record<string, number>>;
  /**
   * Number of lines of each model outside all plans: no gateway serves the model, or the lines name files that
   * there are not.
   */
  readonly unrouted: Readonly<Record<string, number>>;
  /**
   * Safe names of planned models that no worker could send when the file was read. Their routes are
   * looked up again before their lines end as `model_not_found`. Absent if there are none.
   */
  readonly undecided?: readonly string[];
}

/** The bytes of `model_map.json`. */
export function encodeModelMap(map: ModelMap): Buffer {
  return Buffer.from(`${JSON.stringify(map)}\n`);
}

/** The inverse of {@link encodeModelMap}. @throws plan_unreadable */
export function parseModelMap(bytes: Uint8Array): ModelMap {
  const value = parseJson(bytes);
  if (isModelMap(value)) return value;
  throw new NightshiftError('plan_unreadable', 'model_map.json does not have the expected shape');
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (cause) {
    throw new NightshiftError('plan_unreadable', 'model_map.json is not JSON', { cause });
  }
}

function isModelMap(value: unknown): value is ModelMap {
  if (!isJsonObject(value)) return false;
  return (
    value['version'] === 1 &&
    typeof value['nonce'] === 'string' &&
    isCount(value['line_count']) &&
    isRecordOf(value['model_to_safe'], isText) &&
    isRecordOf(value['safe_to_model'], isText) &&
    isRecordOf(value['entries'], isCount) &&
    isRecordOf(value['unrouted'], isCount) &&
    isListOfText(value['undecided'] ?? [])
  );
}

function isListOfText(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

function isRecordOf(value: unknown, member: (value: unknown) => boolean): boolean {
  return isJsonObject(value) && Object.values(value).every(member);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
