/** The span of each route. Probes and `/openapi.json` have none. */
const SPAN_NAMES: Readonly<Record<string, string>> = {
  'POST /v1/batches': 'api-create-batch',
  'GET /v1/batches': 'api-list-batch',
  'GET /v1/batches/:batch_id': 'api-get-batch',
  'POST /v1/batches/:batch_id/cancel': 'api-cancel-batch',
  'GET /v1/nightshift/batches/:batch_id/jobs': 'api-list-job',
  'POST /v1/files': 'api-create-file',
  'GET /v1/files': 'api-list-file',
  'GET /v1/files/:file_id': 'api-get-file',
  'DELETE /v1/files/:file_id': 'api-delete-file',
  'GET /v1/files/:file_id/content': 'api-download-file',
  'POST /v1/uploads': 'api-create-upload',
  'POST /v1/uploads/:upload_id/parts': 'api-add-upload-part',
  'POST /v1/uploads/:upload_id/complete': 'api-complete-upload',
  'POST /v1/uploads/:upload_id/cancel': 'api-cancel-upload',
};

/** Name of the span of a route; undefined if it has none. `url` is the pattern of its path. */
export function spanName(method: string, url: string | undefined): string | undefined {
  return SPAN_NAMES[`${method === 'HEAD' ? 'GET' : method} ${url ?? ''}`];
}
