import { completionWindowSec } from './completion-window';
import { fault, wrongType, wrongValue } from './faults';
import { isJsonObject } from '../../core/openai/json-object';
import { type Body, onlyKnown, parseExpiresAfter, requiredText } from './members';

/** A checked body of `POST /batches`, without its `input_file_id`. */
export interface CreateBatch {
  readonly endpoint: string;
  readonly completionWindow: string;
  readonly windowSec: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly outputExpiresAfterSec: number | null;
}

const KNOWN = new Set([
  'input_file_id',
  'endpoint',
  'completion_window',
  'metadata',
  'output_expires_after',
]);
const METADATA_PAIRS = 16;
const METADATA_KEY_CHARS = 64;
const METADATA_VALUE_CHARS = 512;
const ID_CHARS = 255;

/** The first field to be judged: its file is looked up before the others are. @throws invalid_request */
export function parseInputFileId(body: Body): string {
  const id = requiredText(body, 'input_file_id');
  if (id.length > ID_CHARS || id.includes('\0')) {
    throw wrongValue('input_file_id', 'the id of a file');
  }
  return id;
}

/** All other fields, the first fault answered in the order of contract §7.1. @throws invalid_request */
export function parseCreateBatch(body: Body, endpoints: readonly string[]): CreateBatch {
  const endpoint = requiredText(body, 'endpoint');
  if (!endpoints.includes(endpoint)) throw wrongValue('endpoint', `one of ${list(endpoints)}`);
  const completionWindow = requiredText(body, 'completion_window');
  const windowSec = completionWindowSec(completionWindow);
  if (windowSec === null) {
    throw wrongValue('completion_window', "'24h', or another duration from 1s to 30d");
  }
  const metadata = parseMetadata(body['metadata']);
  const outputExpiresAfterSec = parseExpiresAfter(body, 'output_expires_after');
  onlyKnown(body, KNOWN);
  return { endpoint, completionWindow, windowSec, metadata, outputExpiresAfterSec };
}

function parseMetadata(value: unknown): Record<string, string> | null {
  if (value === undefined || value === null) return null;
  if (!isJsonObject(value)) throw wrongType('metadata', 'an object of strings');
  const pairs = Object.entries(value);
  if (pairs.length > METADATA_PAIRS) {
    const message = `Invalid 'metadata': expected at most ${METADATA_PAIRS} properties, got ${pairs.length}.`;
    throw fault('object_above_max_properties', 'metadata', message);
  }
  for (const [key, text] of pairs) checkPair(key, text);
  return value as Record<string, string>;
}

/** Lengths are in code points. */
function checkPair(key: string, value: unknown): void {
  if (longerThan(key, METADATA_KEY_CHARS)) {
    const message = `Invalid property name in 'metadata': expected at most ${METADATA_KEY_CHARS} characters.`;
    throw fault('property_name_above_max_length', 'metadata', message);
  }
  const param = `metadata.${key}`;
  if (typeof value !== 'string') throw wrongType(param, 'a string');
  if (longerThan(value, METADATA_VALUE_CHARS)) {
    const message = `Invalid '${param}': expected a string of at most ${METADATA_VALUE_CHARS} characters.`;
    throw fault('string_above_max_length', param, message);
  }
}

function longerThan(text: string, chars: number): boolean {
  return text.length > chars && [...text].length > chars;
}

function list(values: readonly string[]): string {
  return values.map((value) => `'${value}'`).join(', ');
}
