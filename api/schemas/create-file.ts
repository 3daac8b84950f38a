import type { ReceivedFile, ReceivedForm } from '../uploads/receive-form';
import {
  EXPIRES_AFTER_SEC,
  missing,
  parseInteger,
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
/** Fields that are plain texts. */
export const FILE_TEXTS: ReadonlySet<string> = new Set(['purpose', ANCHOR, SECONDS]);

/** Judges a form that was read to its end (contract §1.1). @throws invalid_request */
export function parseCreateFile({ fields, file }: ReceivedForm): CreateFile {
  if (file === null) throw fields.has('file') ? wrongType('file', 'a file') : missing('file');
  const purpose = fields.get('purpose');
  if (purpose === undefined) throw missing('purpose');
  checkPurpose(purpose);
  const expiresAfterSec = parseExpiresAfter(fields) ?? ordinaryLifeSec(purpose);
  const unknown = [...fields.keys()].find((name) => !FILE_TEXTS.has(name));
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
  return withinBounds(parseInteger(seconds, SECONDS), SECONDS, EXPIRES_AFTER_SEC);
}
