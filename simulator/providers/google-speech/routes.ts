import { routeIn, type FakeApi, type RouteEntry } from '../fake-api';
import { tokenKeyOf } from '../google/access-token';
import { googleError } from '../google/error-answer';
import { cancelOperation, createJob, getOperation, listOperations } from './operations';

const LOCATION = '/v2/projects/([^/]+)/locations/([^/]+)';
const ROUTES: readonly RouteEntry[] = [
  [new RegExp(`^POST ${LOCATION}/recognizers/_:batchRecognize$`), 'batches.create', createJob],
  [new RegExp(`^GET ${LOCATION}/operations$`), 'batches.list', listOperations],
  [new RegExp(`^GET ${LOCATION}/operations/([^/:]+)$`), 'batches.retrieve', getOperation],
  [new RegExp(`^POST ${LOCATION}/operations/([^/:]+):cancel$`), 'batches.cancel', cancelOperation],
];

/**
 * Batch recognition of Cloud Speech-to-Text, version 2, in every project and location. It reads from and writes to
 * `/providers/gcs`.
 */
export const GOOGLE_SPEECH_API: FakeApi = {
  prefix: 'google-speech',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: tokenKeyOf,
  errorAnswer: googleError,
};
