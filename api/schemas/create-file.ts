import { GatewayError } from '../../core/errors';
import type { ReceivedFile, ReceivedForm } from '../uploads/receive-form';
import {
  EXPIRES_AFTER_SEC,
  missing,
  unknownParameter,
  withinBounds,
  wrongType,
  wrongValue,
} from './faults';

/** A checked form of `POST /files`. */
export interface CreateFile {
  readonly purpose: string;
  /** Base name only. */
  readonly filename: string;
  /** Life from creation; null is for ever. */
  readonly expiresAfterSec: number | null;
  readonly file: ReceivedFile;
}

const PURPOSES = ['assistants', 'batch', 'fine-tune', 'vision', 'user_data', 'evals'];
const ANCHOR = 'expires_after[anchor]';
const SECONDS = 'expires_after[seconds]';
const KNOWN = new Set(['file', 'purpose', ANCHOR, SECONDS]);
const BATCH_LIFE_SEC = 2_592_000;
const FILENAME_CHARS = 512;
/** Endings that say the content is something else; a missing or unknown one says nothing. */
const OTHER_FORMATS = /\.(txt|text|csv|tsv|md|xml|html?|ya?ml|pdf|docx?|xlsx?|zip|gz)$/i;

/** Judges a form that was read to its end (contract §1.1). @throws invalid_request */
export function parseCreateFile({ fields, file }: ReceivedForm): CreateFile {
  if (file === null) throw fields.has('file') ? wrongType('file', 'a file') : missing('file');
  const purpose = fields.get('purpose');
  if (purpose === undefined) throw missing('purpose');
  if (!PURPOSES.includes(purpose)) throw wrongValue('purpose', `one of ${PURPOSES.join(', ')}`);
  const expiresAfterSec =
    parseExpiresAfter(fields) ?? (purpose === 'batch' ? BATCH_LIFE_SEC : null);
  const unknown = [...fields.keys()].find((name) => !KNOWN.has(name));
  if (unknown !== undefined) throw unknownParameter(unknown);
  const filename = baseName(file.filename);
  if (purpose === 'batch') checkBatchContent(filename, file);
  return { purpose, filename, expiresAfterSec, file };
}

function parseExpiresAfter(fields: ReadonlyMap<string, string>): number | null {
  const anchor = fields.get(ANCHOR);
  const seconds = fields.get(SECONDS);
  if (anchor === undefined && seconds === undefined) return null;
  if (anchor === undefined) throw missing(ANCHOR);
  if (anchor !== 'created_at') throw wrongValue(ANCHOR, "'created_at'");
  if (seconds === undefined) throw missing(SECONDS);
  if (!/^[+-]?\d{1,15}$/.test(seconds)) throw wrongType(SECONDS, 'an integer');
  return withinBounds(Number(seconds), SECONDS, EXPIRES_AFTER_SEC);
}

/** Only the first line is looked at: later ones are ingestion's, which tells their numbers. */
function checkBatchContent(filename: string, file: ReceivedFile): void {
  if (file.bytes === 0 || file.firstLine === 'blank') {
    throw new GatewayError('invalid_request', `The file is empty: expected a .jsonl file.`);
  }
  if (!file.isUtf8) {
    throw new GatewayError('invalid_request', 'The file is not valid utf-8.');
  }
  if (file.firstLine === 'other' || OTHER_FORMATS.test(filename)) {
    const message =
      'Invalid file format for a batch: expected a .jsonl file, one JSON object on each line.';
    throw new GatewayError('invalid_request', message);
  }
}

/** Without folders and control characters; `upload` where nothing is left. */
function baseName(filename: string): string {
  const name = filename.slice(Math.max(filename.lastIndexOf('/'), filename.lastIndexOf('\\')) + 1);
  const printable = name.replace(/[\u0000-\u001f\u007f]/g, '').trim();
  return [...printable].slice(0, FILENAME_CHARS).join('') || 'upload';
}
