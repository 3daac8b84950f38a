import { z } from 'zod';
import { checkRequest } from './check-request';
import { withCode } from './fields';

/** A checked body of `POST /uploads/{id}/complete`. */
export interface CompleteUpload {
  /** In the order of the file. */
  readonly partIds: readonly string[];
  /** Of the whole file, in lower-case hexadecimal; null if the client gave none. */
  readonly md5: string | null;
}

const TEXTS = { error: 'an array of strings' };

/** Body of `POST /uploads/{id}/complete`. */
export const completeUploadBody = z
  .strictObject({
    part_ids: z
      .array(z.string(TEXTS), TEXTS)
      .refine((ids) => new Set(ids).size === ids.length, {
        error: 'each part once',
        ...withCode('invalid_value'),
      })
      .meta({ description: 'In the order of the file', uniqueItems: true }),
    md5: z
      .string({ error: 'a string' })
      .regex(/^[0-9a-fA-F]{32}$/, { error: '32 hexadecimal digits' })
      .nullish()
      .meta({ description: 'Of the whole file' }),
  })
  .meta({ id: 'CompleteUpload' });

/** Checks {@link completeUploadBody}. @throws invalid_request */
export function parseCompleteUpload(body: unknown): CompleteUpload {
  const { part_ids: partIds, md5 } = checkRequest(completeUploadBody, body);
  return { partIds, md5: md5?.toLowerCase() ?? null };
}
