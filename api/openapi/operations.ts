import type { z } from 'zod';
import { batchShape } from '../objects/batch-object';
import { deletedFileShape, fileShape } from '../objects/file-object';
import { jobShape } from '../objects/job-object';
import { listShape } from '../objects/list-object';
import { partShape, uploadShape } from '../objects/upload-object';
import { addPartForm } from '../requests/add-part';
import { completeUploadBody } from '../requests/complete-upload';
import { createBatchBody } from '../requests/create-batch';
import { createFileForm } from '../requests/create-file';
import { createUploadBody } from '../requests/create-upload';
import { batchListQuery, fileListQuery } from '../requests/list-queries';
import { batchPath, filePath, uploadPath } from '../requests/path-parameters';

/** One method of one path, as the document describes it. */
export interface Operation {
  readonly id: string;
  readonly method: 'get' | 'post' | 'delete';
  /** Contains `{name}` for each of `parameters`. */
  readonly path: string;
  readonly parameters?: z.ZodObject;
  readonly summary: string;
  /** Null if the answer is a file's content. */
  readonly answer: z.ZodType | null;
  readonly json?: z.ZodType;
  readonly form?: z.ZodType;
  readonly query?: z.ZodObject;
  /** Whether it accepts an `Idempotency-Key`. */
  readonly acceptsIdempotencyKey?: boolean;
  /** Statuses of errors, in addition to {@link COMMON_ERRORS}. */
  readonly errors: readonly number[];
}

const files = listShape(fileShape, 'FileList');
const batches = listShape(batchShape, 'BatchList');
const jobs = listShape(jobShape, 'BatchJobList');

const FILE_OPERATIONS: readonly Operation[] = [
  {
    id: 'createFile',
    method: 'post',
    path: '/v1/files',
    summary: 'Upload a file',
    form: createFileForm,
    acceptsIdempotencyKey: true,
    answer: fileShape,
    errors: [400, 404, 413, 415, 429],
  },
  {
    id: 'listFiles',
    method: 'get',
    path: '/v1/files',
    summary: 'List files, newest first',
    query: fileListQuery,
    answer: files,
    errors: [400],
  },
  {
    id: 'retrieveFile',
    method: 'get',
    path: '/v1/files/{file_id}',
    parameters: filePath,
    summary: 'Retrieve a file',
    answer: fileShape,
    errors: [400, 404],
  },
  {
    id: 'deleteFile',
    method: 'delete',
    path: '/v1/files/{file_id}',
    parameters: filePath,
    summary: 'Delete a file',
    answer: deletedFileShape,
    errors: [400, 404],
  },
  {
    id: 'downloadFile',
    method: 'get',
    path: '/v1/files/{file_id}/content',
    parameters: filePath,
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
    summary: 'Create an upload for a file of up to 8 GB in parts; it expires after an hour',
    json: createUploadBody,
    answer: uploadShape,
    errors: [400, 413, 415, 429],
  },
  {
    id: 'addUploadPart',
    method: 'post',
    path: '/v1/uploads/{upload_id}/parts',
    parameters: uploadPath,
    summary: 'Upload a part of up to 64 MB; parts may be sent in parallel',
    form: addPartForm,
    answer: partShape,
    errors: [400, 404, 413, 415],
  },
  {
    id: 'completeUpload',
    method: 'post',
    path: '/v1/uploads/{upload_id}/complete',
    parameters: uploadPath,
    summary: 'Join the parts into a file',
    json: completeUploadBody,
    answer: uploadShape,
    errors: [400, 404, 413, 415],
  },
  {
    id: 'cancelUpload',
    method: 'post',
    path: '/v1/uploads/{upload_id}/cancel',
    parameters: uploadPath,
    summary: 'Cancel an upload',
    answer: uploadShape,
    errors: [400, 404],
  },
];

const batchOperations = (endpoints: readonly string[]): readonly Operation[] => [
  {
    id: 'createBatch',
    method: 'post',
    path: '/v1/batches',
    summary: 'Create a batch',
    json: createBatchBody(endpoints),
    acceptsIdempotencyKey: true,
    answer: batchShape,
    errors: [400, 404, 413, 415, 429],
  },
  {
    id: 'listBatches',
    method: 'get',
    path: '/v1/batches',
    summary: 'List batches, newest first',
    query: batchListQuery,
    answer: batches,
    errors: [400],
  },
  {
    id: 'retrieveBatch',
    method: 'get',
    path: '/v1/batches/{batch_id}',
    parameters: batchPath,
    summary: 'Retrieve a batch',
    answer: batchShape,
    errors: [400, 404],
  },
  {
    id: 'cancelBatch',
    method: 'post',
    path: '/v1/batches/{batch_id}/cancel',
    parameters: batchPath,
    summary: 'Cancel a batch',
    answer: batchShape,
    errors: [400, 404, 409],
  },
  {
    id: 'listBatchJobs',
    method: 'get',
    path: '/v1/nightshift/batches/{batch_id}/jobs',
    parameters: batchPath,
    summary: 'List the jobs of a batch at providers, oldest first; not part of the API of OpenAI',
    answer: jobs,
    errors: [400, 404],
  },
];

/** Everything under `/v1`, for the endpoints that batches may be created for. */
export function operations(endpoints: readonly string[]): readonly Operation[] {
  return [...FILE_OPERATIONS, ...UPLOAD_OPERATIONS, ...batchOperations(endpoints)];
}

/** Statuses of errors that every operation may answer. */
export const COMMON_ERRORS: readonly number[] = [401, 403, 405, 408, 429, 500, 503];
