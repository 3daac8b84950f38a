import { z } from 'zod';
import { baseName, checkBatchContent, defaultLifetimeSec } from '../uploads/file-rules';
import type { ReceivedFile, ReceivedForm } from '../uploads/receive-form';
import { checkForm } from './check-form';
import { choice, fileField, lifetimeText, ONE_PURPOSE, PURPOSES, withCode } from './fields';

/** A checked form of `POST /files`. */
export interface CreateFile {
  readonly purpose: string;
  /** Base name only. */
  readonly filename: string;
  /** Lifetime from creation; null if the file never expires. */
  readonly expiresAfterSec: number | null;
  readonly file: ReceivedFile;
}

const ANCHOR = 'expires_after[anchor]';
const SECONDS = 'expires_after[seconds]';

/** Form of `POST /files`. */
export const createFileForm = z
  .strictObject({
    file: fileField((value): value is ReceivedFile => typeof value === 'object'),
    purpose: choice(PURPOSES, ONE_PURPOSE),
    [ANCHOR]: choice(['created_at'], "'created_at'").optional(),
    [SECONDS]: lifetimeText().optional(),
  })
  .refine((form) => hasBothOrNone(form, ANCHOR, SECONDS), needed(SECONDS))
  .refine((form) => hasBothOrNone(form, SECONDS, ANCHOR), needed(ANCHOR))
  .meta({ id: 'CreateFile', dependentRequired: { [ANCHOR]: [SECONDS], [SECONDS]: [ANCHOR] } });

/** Names of the fields that are plain text. */
export const FILE_TEXTS: ReadonlySet<string> = new Set(
  Object.keys(createFileForm.shape).filter((name) => name !== 'file'),
);

/** Checks {@link createFileForm}, and the bytes of a file for batches. @throws invalid_request */
export function parseCreateFile(form: ReceivedForm): CreateFile {
  const checked = checkForm(createFileForm, { form, fileName: 'file' });
  const { file, purpose } = checked;
  const filename = baseName(file.filename);
  if (purpose === 'batch') checkBatchContent(filename, file);
  const expiresAfterSec = checked[SECONDS] ?? defaultLifetimeSec(purpose);
  return { purpose, filename, expiresAfterSec, file };
}

function hasBothOrNone(form: object, given: string, other: string): boolean {
  return !Object.hasOwn(form, given) || Object.hasOwn(form, other);
}

/** Reports the field as missing, even if other fields are wrong too. */
function needed(name: string) {
  return { path: [name], when: () => true, ...withCode('missing_required_parameter') };
}
