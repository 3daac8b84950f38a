import { routeIn, type FakeApi, type RouteEntry } from '../fake-api';
import { tokenKeyOf } from '../google/access-token';
import { googleError } from '../google/error-answer';
import { cancelJob, createJob, listJobs, retrieveJob } from './jobs';

const JOBS = '/v1(?:beta1)?/projects/([^/]+)/locations/([^/]+)/batchPredictionJobs';
const ROUTES: readonly RouteEntry[] = [
  [new RegExp(`^POST ${JOBS}$`), 'batches.create', createJob],
  [new RegExp(`^GET ${JOBS}$`), 'batches.list', listJobs],
  [new RegExp(`^GET ${JOBS}/([^/:]+)$`), 'batches.retrieve', retrieveJob],
  [new RegExp(`^POST ${JOBS}/([^/:]+):cancel$`), 'batches.cancel', cancelJob],
];

/** Batch prediction of Google models at Vertex AI, in every project and location. */
export const VERTEX_API: FakeApi = {
  prefix: 'vertex',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: tokenKeyOf,
  errorAnswer: googleError,
};
