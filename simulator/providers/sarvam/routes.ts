import type { IncomingHttpHeaders } from 'node:http';
import { jsonAnswer, type ApiFault, type ProviderAnswer } from '../answer';
import { routeIn, type FakeApi, type RouteEntry } from '../fake-api';
import { downloadFiles, getJob, initiateJob, startJob, uploadFiles } from './jobs';

const ROUTES: readonly RouteEntry[] = [
  [/^POST \/speech-to-text\/job\/v1$/, 'files.create', initiateJob],
  [/^POST \/speech-to-text\/job\/v1\/upload-files$/, 'files.create', uploadFiles],
  [/^POST \/speech-to-text\/job\/v1\/download-files$/, 'files.list', downloadFiles],
  [/^POST \/speech-to-text\/job\/v1\/([^/]+)\/start$/, 'batches.create', startJob],
  [/^GET \/speech-to-text\/job\/v1\/([^/]+)\/status$/, 'batches.retrieve', getJob],
];

/**
 * Batches of recordings of Sarvam AI, whose files are at `/providers/azure-blob`:
 * https://docs.sarvam.ai/api-reference/speech-to-text/stt/job/initiate.
 */
export const SARVAM_API: FakeApi = {
  prefix: 'sarvam',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf,
  errorAnswer,
};

function keyOf({ 'api-subscription-key': key }: IncomingHttpHeaders): string {
  return typeof key === 'string' ? key : '';
}

const CODES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'invalid_api_key_error',
  404: 'not_found_error',
  429: 'rate_limit_exceeded_error',
};

function errorAnswer({ httpStatus, message }: ApiFault): ProviderAnswer {
  const code = CODES[httpStatus] ?? 'internal_server_error';
  return jsonAnswer({ error: { message, code, request_id: 'simulated' } }, httpStatus);
}
