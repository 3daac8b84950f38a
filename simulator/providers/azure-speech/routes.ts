import type { IncomingHttpHeaders } from 'node:http';
import { jsonAnswer, type ApiFault, type ProviderAnswer } from '../answer';
import { routeIn, type FakeApi, type RouteEntry } from '../fake-api';
import { deleteJob, getJob, listFiles, listJobs, submitJob } from './jobs';

const ROUTES: readonly RouteEntry[] = [
  [/^POST \/speechtotext\/transcriptions:submit$/, 'batches.create', submitJob],
  [/^GET \/speechtotext\/transcriptions$/, 'batches.list', listJobs],
  [/^GET \/speechtotext\/transcriptions\/([^/]+)$/, 'batches.retrieve', getJob],
  [/^GET \/speechtotext\/transcriptions\/([^/]+)\/files$/, 'files.list', listFiles],
  [/^DELETE \/speechtotext\/transcriptions\/([^/]+)$/, 'batches.delete', deleteJob],
];

/**
 * Batch transcription of Azure Speech, which reads from and writes to `/providers/azure-blob`:
 * https://learn.microsoft.com/rest/api/speechtotext/transcriptions.
 */
export const AZURE_SPEECH_API: FakeApi = {
  prefix: 'azure-speech',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf,
  errorAnswer,
};

function keyOf({ 'ocp-apim-subscription-key': key }: IncomingHttpHeaders): string {
  return typeof key === 'string' ? key : '';
}

/** The code in the service's own errors. Those of the gateway before it have the status as code. */
const CODES: Readonly<Record<number, string>> = {
  400: 'InvalidRequest',
  404: 'NotFound',
  409: 'Conflict',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
};

function errorAnswer({ httpStatus, message }: ApiFault): ProviderAnswer {
  const code = CODES[httpStatus];
  const body = { code: code ?? String(httpStatus), message };
  return jsonAnswer(code === undefined ? { error: body } : body, httpStatus);
}
