import { z } from 'zod';
import { checkRequest } from './check-request';

/** Parameters in the path of a file. Any text is valid; an unknown id gets a 404. */
export const filePath = z.object({ file_id: z.string() });

/** Parameters in the path of an upload. */
export const uploadPath = z.object({ upload_id: z.string() });

/** Parameters in the path of a batch. */
export const batchPath = z.object({
  batch_id: z.string().regex(/^batch_/, { error: "an id that begins with 'batch_'" }),
});

/** The id in the path of a file. */
export function parseFileId(params: unknown): string {
  return checkRequest(filePath, params).file_id;
}

/** The id in the path of an upload. */
export function parseUploadId(params: unknown): string {
  return checkRequest(uploadPath, params).upload_id;
}

/** The id in the path of a batch. @throws invalid_request */
export function parseBatchId(params: unknown): string {
  return checkRequest(batchPath, params).batch_id;
}
