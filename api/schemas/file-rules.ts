import { NightshiftError } from '../../core/errors';
import type { UploadFacts } from '../uploads/upload-inspector';
import { wrongValue } from './faults';

const PURPOSES = ['assistants', 'batch', 'fine-tune', 'vision', 'user_data', 'evals'];
const BATCH_LIFE_SEC = 2_592_000;
const FILENAME_CHARS = 512;
/** Endings that say the content is something else; a missing or unknown one says nothing. */
const OTHER_FORMATS = /\.(txt|text|csv|tsv|md|xml|html?|ya?ml|pdf|docx?|xlsx?|zip|gz)$/i;

/** A purpose that files may be made for (contract §1.1). @throws invalid_request */
export function checkPurpose(purpose: string): string {
  if (!PURPOSES.includes(purpose)) throw wrongValue('purpose', `one of ${PURPOSES.join(', ')}`);
  return purpose;
}

/** Life of a file that names none, seconds from its creation; null is for ever. */
export function ordinaryLifeSec(purpose: string): number | null {
  return purpose === 'batch' ? BATCH_LIFE_SEC : null;
}

/**
 * What the bytes of a file for batches must be (contract §1.1). Only the first line is looked at:
 * later ones are ingestion's, which tells their numbers. @throws invalid_request
 */
export function checkBatchContent(filename: string, facts: UploadFacts): void {
  if (facts.bytes === 0 || facts.firstLine === 'blank') {
    throw new NightshiftError('invalid_request', `The file is empty: expected a .jsonl file.`);
  }
  if (!facts.isUtf8) {
    throw new NightshiftError('invalid_request', 'The file is not valid utf-8.');
  }
  if (facts.firstLine === 'other' || OTHER_FORMATS.test(filename)) {
    const message =
      'Invalid file format for a batch: expected a .jsonl file, one JSON object on each line.';
    throw new NightshiftError('invalid_request', message);
  }
}

/** A file's name without folders and control characters; `upload` where nothing is left. */
export function baseName(filename: string): string {
  // Half a surrogate pair has no UTF-8: it would come back from the database as another character.
  const text = Buffer.from(filename, 'utf8').toString('utf8');
  const name = text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf('\\')) + 1);
  const printable = name.replace(/[\u0000-\u001f\u007f]/g, '').trim();
  return [...printable].slice(0, FILENAME_CHARS).join('') || 'upload';
}
