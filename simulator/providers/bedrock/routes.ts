import type { ApiFault, ProviderAnswer } from '../answer';
import { accessKeyOf } from '../aws/signature';
import { routeIn, type FakeApi, type RouteEntry } from '../fake-api';
import { createJob, getJob, listJobs, stopJob } from './jobs';

const ROUTES: readonly RouteEntry[] = [
  [/^POST \/model-invocation-job$/, 'batches.create', createJob],
  [/^GET \/model-invocation-jobs$/, 'batches.list', listJobs],
  [/^GET \/model-invocation-job\/([^/]+)$/, 'batches.retrieve', getJob],
  [/^POST \/model-invocation-job\/([^/]+)\/stop$/, 'batches.cancel', stopJob],
];

/**
 * Batch inference jobs of Amazon Bedrock, which read from and write to `/providers/s3`:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock.html.
 */
export const BEDROCK_API: FakeApi = {
  prefix: 'bedrock',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: accessKeyOf,
  errorAnswer,
};

/** AWS's own answer to each status. */
const ERRORS: Readonly<Record<number, readonly [status: number, type: string]>> = {
  400: [400, 'ValidationException'],
  401: [403, 'UnrecognizedClientException'],
  404: [404, 'ResourceNotFoundException'],
  409: [400, 'ConflictException'],
  429: [400, 'ServiceQuotaExceededException'],
  500: [500, 'InternalServerException'],
  503: [503, 'ServiceUnavailableException'],
};

function errorAnswer({ httpStatus, message }: ApiFault): ProviderAnswer {
  const [status, type] = ERRORS[httpStatus] ?? [httpStatus, 'InternalServerException'];
  return {
    status,
    contentType: 'application/json',
    bytes: Buffer.from(JSON.stringify({ message })),
    headers: { 'x-amzn-errortype': type },
  };
}
