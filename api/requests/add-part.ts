import { z } from 'zod';
import type { ReceivedFile, ReceivedForm } from '../uploads/receive-form';
import { checkForm } from './check-form';
import { fileField } from './fields';

/** Form of `POST /uploads/{id}/parts`. */
export const addPartForm = z
  .strictObject({
    data: fileField((value): value is ReceivedFile => typeof value === 'object'),
  })
  .meta({ id: 'AddUploadPart' });

/** Checks {@link addPartForm}. @throws invalid_request */
export function parseAddPart(form: ReceivedForm): ReceivedFile {
  return checkForm(addPartForm, { form, fileName: 'data' }).data;
}
