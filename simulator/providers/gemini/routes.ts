import type { IncomingHttpHeaders } from 'node:http';
import { routeIn, type FakeApi, type RouteEntry } from '../fake-api';
import { googleError } from '../google/error-answer';
import { cancelBatch, createBatch, deleteBatch, listBatches, retrieveBatch } from './batches';
import { deleteFile, fileContent, finishUpload, retrieveFile, startUpload } from './files';

const FILE = '/v1beta/files/([^/:]+)';
const BATCH = '/v1beta/batches/([^/:]+)';
const UPLOAD = '/upload/v1beta/files';
const ROUTES: readonly RouteEntry[] = [
  [new RegExp(`^POST ${UPLOAD}/([^/]+)$`), 'files.create', finishUpload],
  [new RegExp(`^POST ${UPLOAD}$`), 'files.create', startUpload],
  [new RegExp(`^GET (?:/download)?${FILE}:download$`), 'files.content', fileContent],
  [new RegExp(`^GET ${FILE}$`), 'files.retrieve', retrieveFile],
  [new RegExp(`^DELETE ${FILE}$`), 'files.delete', deleteFile],
  [
    /^POST \/v1beta\/((?:models|tunedModels)\/[^/]+):batchGenerateContent$/,
    'batches.create',
    createBatch,
  ],
  [/^GET \/v1beta\/batches$/, 'batches.list', listBatches],
  [new RegExp(`^GET ${BATCH}$`), 'batches.retrieve', retrieveBatch],
  [new RegExp(`^POST ${BATCH}:cancel$`), 'batches.cancel', cancelBatch],
  [new RegExp(`^DELETE ${BATCH}$`), 'batches.delete', deleteBatch],
];

/** Files and batches of the Gemini API (https://ai.google.dev/gemini-api/docs/batch-api). */
export const GEMINI_API: FakeApi = {
  prefix: 'gemini',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf,
  // Google answers a wrong key with 400.
  errorAnswer: (error) =>
    error.apiCode === 'invalid_api_key'
      ? googleError({ ...error, httpStatus: 400, apiCode: 'API_KEY_INVALID' })
      : googleError(error),
};

function keyOf(headers: IncomingHttpHeaders, query: URLSearchParams): string {
  return String(headers['x-goog-api-key'] ?? query.get('key') ?? '');
}
