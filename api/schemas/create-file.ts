import type { ReceivedFile, ReceivedForm } from '../uploads/receive-form';
import {
  EXPIRES_AFTER_SEC,
  missing,
  unknownParameter,
  withinBounds,
  wrongType,
  wrongValue,
} from './faults';
import { baseName, checkBatchContent, checkPurpose, ordinaryLifeSec } from './file-rules';

/** A checked form of `POST /files`. */
export interface CreateFile {
  readonly purpose: string;
  /** Base name only. */
  readonly filename: string;
  /** Life from creation; null is for ever. */
  readonly expiresAfterSec: number | null;
  readonly file: ReceivedFile;
}

const ANCHOR = 'expires_after[anchor]';
const SECONDS = 'expires_after[seconds]';
const KNOWN = new Set(['file', 'purpose', ANCHOR, SECONDS]);

/** Judges a form that was read to its end (contract §1.1). @throws invalid_request */
export function parseCreateFile({ fields, file }: ReceivedForm): CreateFile {
  if (file === null) throw fields.has('file') ? wrongType('file', 'a file') : missing('file');
  const purpose = fields.get('purpose');
  if (purpose === undefined) throw missing('purpose');
  checkPurpose(purpose);
  const expiresAfterSec = parseExpiresAfter(fields) ?? ordinaryLifeSec(purpose);
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
