import { NightshiftError } from '../../core/errors';
import type { UploadFacts } from './upload-inspector';

const BATCH_LIFETIME_SEC = 2_592_000;
const FILENAME_CHARS = 512;
/** Endings of other formats. A file with an unknown ending, or none, is accepted. */
const OTHER_FORMATS = /\.(txt|text|csv|tsv|md|xml|html?|ya?ml|pdf|docx?|xlsx?|zip|gz)$/i;

/** Lifetime of a file without `expires_after`, in seconds from its creation; null if it never expires. */
export function defaultLifetimeSec(purpose: string): number | null {
  return purpose === 'batch' ? BATCH_LIFETIME_SEC : null;
}

/**
 * Checks the bytes of a file for batches (docs/design/api-contract.md#file-checks). Only the first line is
 * parsed: ingestion checks all lines and reports line numbers. @throws invalid_request
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

/** A file's name without folders and control characters; `upload` if nothing remains. */
export function baseName(filename: string): string {
  // UTF-8 cannot encode a lone surrogate. Replace it here, so that every answer has the same name.
  const text = Buffer.from(filename, 'utf8').toString('utf8');
  const name = text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf('\\')) + 1);
  const printable = name.replace(/[\u0000-\u001f\u007f]/g, '').trim();
  return [...printable].slice(0, FILENAME_CHARS).join('') || 'upload';
}
