import type { IncomingHttpHeaders } from 'node:http';
import type { ApiFault, ProviderAnswer } from '../answer';
import { accessKeyOf } from '../aws/signature';
import type { ApiEffect, ApiRoute, FakeApi } from '../fake-api';
import type { ProviderCallName } from '../settings';
import { deleteJob, getJob, listJobs, startJob } from './jobs';

const SERVICE = 'Transcribe.';
const OPERATIONS: Readonly<Record<string, readonly [ProviderCallName, ApiEffect]>> = {
  StartTranscriptionJob: ['batches.create', startJob],
  GetTranscriptionJob: ['batches.retrieve', getJob],
  ListTranscriptionJobs: ['batches.list', listJobs],
  DeleteTranscriptionJob: ['batches.delete', deleteJob],
};

/**
 * Transcription jobs of Amazon Transcribe, which reads from and writes to `/providers/s3`:
 * https://docs.aws.amazon.com/transcribe/latest/APIReference. All calls have one path; a header names the
 * operation.
 */
export const AWS_TRANSCRIBE_API: FakeApi = {
  prefix: 'transcribe',
  findRoute,
  keyOf: accessKeyOf,
  errorAnswer,
};

function findRoute(method: string, path: string, headers: IncomingHttpHeaders): ApiRoute | null {
  const target = headers['x-amz-target'];
  if (method !== 'POST' || path !== '/' || typeof target !== 'string') return null;
  const operation = OPERATIONS[target.slice(SERVICE.length)];
  if (!target.startsWith(SERVICE) || operation === undefined) return null;
  const [name, effect] = operation;
  return { name, params: [], prepare: async () => effect };
}

/** AWS's own answer to each status. Nearly all errors are a 400. */
const ERRORS: Readonly<Record<number, readonly [status: number, type: string]>> = {
  400: [400, 'BadRequestException'],
  401: [400, 'UnrecognizedClientException'],
  404: [400, 'BadRequestException'],
  409: [400, 'ConflictException'],
  429: [400, 'LimitExceededException'],
  500: [500, 'InternalFailureException'],
  503: [503, 'ServiceUnavailableException'],
};

function errorAnswer({ httpStatus, message }: ApiFault): ProviderAnswer {
  const [status, type] = ERRORS[httpStatus] ?? [httpStatus, 'InternalFailureException'];
  const body = { __type: `com.amazonaws.transcribe#${type}`, Message: message };
  const bytes = Buffer.from(JSON.stringify(body));
  return { status, contentType: 'application/x-amz-json-1.1', bytes };
}
