import type { CreateModelInvocationJobRequest } from '@aws-sdk/client-bedrock';
import type { JobToCreate, NewJob } from '../provider';
import type { RemoteFolder } from '../remote-folder';

const JOB_NAME = /^ns-[0-9A-Za-z]+-([0-9a-f]{32})$/;
const JOB_FOLDER = /^job_[0-9a-f]{32}\//;
/** As many digits of the installation's id as a name of 63 characters has room for. */
const STORE_DIGITS = 27;

/** How the names of an installation's jobs begin. */
export function jobNamePrefix(storeId: string): string {
  return `ns-${storeId.replace(/[^0-9A-Za-z]/g, '').slice(0, STORE_DIGITS)}-`;
}

/** The name of a job, which is its request token too: a job of this name is ours. */
export function bedrockJobName({ storeId, jobId }: JobToCreate): string {
  return jobNamePrefix(storeId) + jobId.slice('job_'.length);
}

/** The id of our job by its name; null for a job of someone else. */
export function jobIdOfName(name: string): string | null {
  const digits = JOB_NAME.exec(name)?.[1];
  return digits === undefined ? null : `job_${digits}`;
}

/** The name of a job's input in the folder. */
export function placeOfInput(jobId: string): string {
  return `${jobId}/input.jsonl`;
}

/**
 * The folder with everything that a job leaves in the bucket, by the name of one of its objects. Null for an object of
 * something else: the folder is deleted as a whole.
 */
export function folderOf(object: string): string | null {
  return JOB_FOLDER.exec(object)?.[0] ?? null;
}

/** A request for a job. Every attempt sends the same one, with the same token. */
export function createRequest(
  job: NewJob,
  { folder, roleArn }: { readonly folder: RemoteFolder; readonly roleArn: string },
): CreateModelInvocationJobRequest {
  const { remoteInput, model, window } = job;
  const home = remoteInput === null ? null : folderOf(remoteInput);
  if (remoteInput === null || home === null) throw new TypeError(`job ${job.jobId} has no input`);
  const name = bedrockJobName(job);
  return {
    jobName: name,
    clientRequestToken: name,
    roleArn,
    modelId: model,
    modelInvocationType: 'Converse',
    inputDataConfig: {
      s3InputDataConfig: { s3InputFormat: 'JSONL', s3Uri: folder.uri(remoteInput) },
    },
    outputDataConfig: {
      s3OutputDataConfig: { s3Uri: folder.uri(`${home}output/`) },
    },
    timeoutDurationInHours: Number(window),
  };
}
