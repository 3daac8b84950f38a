import type { z } from 'zod';
import * as requests from './requests';
import * as shapes from './shapes';

/** One method of one path, as the document describes it. */
export interface Operation {
  readonly id: string;
  readonly method: 'get' | 'post' | 'delete';
  /** With `{name}` for what is variable. */
  readonly path: string;
  readonly summary: string;
  /** Null: bytes, as they were uploaded or made. */
  readonly answer: z.ZodType | null;
  readonly json?: z.ZodType;
  readonly form?: z.ZodType;
  readonly query?: z.ZodObject;
  /** Takes an `Idempotency-Key`. */
  readonly isRepeatable?: boolean;
  /** Statuses of errors, beside those of {@link COMMON_ERRORS}. */
  readonly errors: readonly number[];
}

const files = shapes.listShape(shapes.fileShape, 'FileList');
const batches = shapes.listShape(shapes.batchShape, 'BatchList');

const FILE_OPERATIONS: readonly Operation[] = [
  {
    id: 'createFile',
    method: 'post',
    path: '/v1/files',
    summary: 'Upload a file',
    form: requests.createFileForm,
    isRepeatable: true,
    answer: shapes.fileShape,
    errors: [400, 404, 413, 415, 429],
  },
  {
    id: 'listFiles',
    method: 'get',
    path: '/v1/files',
    summary: 'List files, newest first',
    query: requests.fileListQuery,
    answer: files,
    errors: [400],
  },
  {
    id: 'retrieveFile',
    method: 'get',
    path: '/v1/files/{file_id}',
    summary: 'Look at a file',
    answer: shapes.fileShape,
    errors: [400, 404],
  },
  {
    id: 'deleteFile',
    method: 'delete',
    path: '/v1/files/{file_id}',
    summary: 'Delete a file',
    answer: shapes.deletedFileShape,
    errors: [400, 404],
  },
  {
    id: 'downloadFile',
    method: 'get',
    path: '/v1/files/{file_id}/content',
    summary: 'Download a file, or one range of it',
    answer: null,
    errors: [400, 404, 416],
  },
];

const UPLOAD_OPERATIONS: readonly Operation[] = [
  {
    id: 'createUpload',
    method: 'post',
    path: '/v1/uploads',
    summary: 'Begin to upload a file of up to 8 GB in parts; it stays open for an hour',
    json: requests.createUploadBody,
    answer: shapes.uploadShape,
    errors: [400, 413, 415, 429],
  },
  {
    id: 'addUploadPart',
    method: 'post',
    path: '/v1/uploads/{upload_id}/parts',
    summary: 'Upload a part of up to 64 MB; many at once',
    form: requests.addPartForm,
    answer: shapes.partShape,
    errors: [400, 404, 413, 415],
  },
  {
    id: 'completeUpload',
    method: 'post',
    path: '/v1/uploads/{upload_id}/complete',
    summary: 'Make a file of the parts',
    json: requests.completeUploadBody,
    answer: shapes.uploadShape,
    errors: [400, 404, 413, 415],
  },
  {
    id: 'cancelUpload',
    method: 'post',
    path: '/v1/uploads/{upload_id}/cancel',
    summary: 'Cancel an upload',
    answer: shapes.uploadShape,
    errors: [400, 404],
  },
];

const BATCH_OPERATIONS: readonly Operation[] = [
  {
    id: 'createBatch',
    method: 'post',
    path: '/v1/batches',
    summary: 'Create a batch',
    json: requests.createBatchBody,
    isRepeatable: true,
    answer: shapes.batchShape,
    errors: [400, 404, 413, 415, 429],
  },
  {
    id: 'listBatches',
    method: 'get',
    path: '/v1/batches',
    summary: 'List batches, newest first',
    query: requests.batchListQuery,
    answer: batches,
    errors: [400],
  },
  {
    id: 'retrieveBatch',
    method: 'get',
    path: '/v1/batches/{batch_id}',
    summary: 'Look at a batch',
    answer: shapes.batchShape,
    errors: [400, 404],
  },
  {
    id: 'cancelBatch',
    method: 'post',
    path: '/v1/batches/{batch_id}/cancel',
    summary: 'Cancel a batch',
    answer: shapes.batchShape,
    errors: [400, 404, 409],
  },
];

/** Everything under `/v1` (contract §1, §2). */
export const OPERATIONS: readonly Operation[] = [
  ...FILE_OPERATIONS,
  ...UPLOAD_OPERATIONS,
  ...BATCH_OPERATIONS,
];

/** Statuses of errors that every operation may answer. */
export const COMMON_ERRORS: readonly number[] = [401, 403, 405, 408, 429, 500, 503];
