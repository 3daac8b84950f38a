import type { z } from 'zod';
import type { ReceivedForm } from '../uploads/receive-form';
import { checkRequest } from './check-request';
import { unknownParameter } from './faults';

/** Like {@link checkRequest}, for a form whose file is the field `fileName`. @throws invalid_request */
export function checkForm<S extends z.ZodObject>(
  schema: S,
  { form: { fields, file }, fileName }: { form: ReceivedForm; fileName: string },
): z.output<S> {
  const files: [string, unknown][] = file === null ? [] : [[fileName, file]];
  const checked = checkRequest(schema, Object.fromEntries([...fields, ...files]));
  // The form has a file and also a text field of the same name.
  if (file !== null && fields.has(fileName)) throw unknownParameter(fileName);
  return checked;
}
