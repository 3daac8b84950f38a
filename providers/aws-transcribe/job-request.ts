import type { LanguageCode, StartTranscriptionJobRequest } from '@aws-sdk/client-transcribe';
import { ANY_LANGUAGE } from '../audio/staged-recording';
import { jobName } from '../job-name';
import type { JobToCreate } from '../provider';

/** Where the input and the transcript of a job are, as names in the folder. */
export interface TranscribePlaces {
  readonly recording: string;
  readonly transcript: string;
}

/** The name of a job, which Transcribe keeps unique. */
export function transcribeJobName(job: JobToCreate): string {
  return jobName(job).slice(0, 200);
}

/** The places of a job by its recording; null for a name of something else. */
export function transcribePlaces(recording: string): TranscribePlaces | null {
  const [jobId, language, name, ...rest] = recording.split('/');
  if (jobId === undefined || language === undefined || name === undefined) return null;
  return rest.length > 0 ? null : { recording, transcript: `${jobId}/${name}.json` };
}

/** A request for a job. Every attempt sends the same one. */
export function startRequest(
  job: JobToCreate,
  places: TranscribePlaces,
  {
    bucket,
    prefix,
    roleArn,
  }: { readonly bucket: string; readonly prefix: string; readonly roleArn: string | null },
): StartTranscriptionJobRequest {
  const language = places.recording.split('/')[1];
  return {
    TranscriptionJobName: transcribeJobName(job),
    ...(language === undefined || language === ANY_LANGUAGE
      ? { IdentifyLanguage: true }
      : { LanguageCode: language as LanguageCode }),
    Media: { MediaFileUri: `s3://${bucket}/${prefix}${places.recording}` },
    OutputBucketName: bucket,
    OutputKey: prefix + places.transcript,
    // Jobs beyond the quota of the account wait in a queue instead of being refused, which needs a role.
    ...(roleArn === null
      ? {}
      : { JobExecutionSettings: { AllowDeferredExecution: true, DataAccessRoleArn: roleArn } }),
  };
}
