import type { NewJob } from '../../../providers/provider';
import { startRequest, transcribePlaces } from '../../../providers/aws-transcribe/job-request';
import { readTranscribeJob } from '../../../providers/aws-transcribe/job-state';
import { readTranscript } from '../../../providers/aws-transcribe/transcript';

const JOB: NewJob = {
  jobId: `job_${'a'.repeat(32)}`,
  storeId: '8a0e1c1e-1d0a-4a6f-9d1c-0d9a3f7f0001',
  endpoint: '/v1/audio/transcriptions',
  model: 'any',
  lines: 1,
  hops: 0,
  remoteInput: null,
  window: null,
  inline: null,
};
const BUCKET = { bucket: 'bucket', prefix: 'folder/', roleArn: null };

it('asks for the language of the line, or to recognise it', () => {
  const places = (language: string) => transcribePlaces(`job_1/${language}/n1.json.wav`)!;
  expect(startRequest(JOB, places('de-DE'), BUCKET)).toEqual({
    TranscriptionJobName: `nightshift.${JOB.storeId}.${JOB.jobId}`,
    LanguageCode: 'de-DE',
    Media: { MediaFileUri: 's3://bucket/folder/job_1/de-DE/n1.json.wav' },
    OutputBucketName: 'bucket',
    OutputKey: 'folder/job_1/n1.json.wav.json',
  });
  expect(startRequest(JOB, places('any'), BUCKET)).toMatchObject({ IdentifyLanguage: true });
});

it('lets jobs wait in the queue of the account if it has a role', () => {
  const request = startRequest(JOB, transcribePlaces('job_1/any/n1.json')!, {
    ...BUCKET,
    roleArn: 'arn:aws:iam::1:role/r',
  });
  expect(request.JobExecutionSettings).toEqual({
    AllowDeferredExecution: true,
    DataAccessRoleArn: 'arn:aws:iam::1:role/r',
  });
});

it('reads words, segments and the language of a transcript whose times are texts', () => {
  const results = {
    language_code: 'en-GB',
    transcripts: [{ transcript: 'Good morning.' }],
    items: [
      {
        type: 'pronunciation',
        alternatives: [{ content: 'Good' }],
        start_time: '0.10',
        end_time: '0.4',
      },
      {
        type: 'pronunciation',
        alternatives: [{ content: 'morning' }],
        start_time: '0.5',
        end_time: '1.25',
      },
      { type: 'punctuation', alternatives: [{ content: '.' }] },
    ],
    audio_segments: [{ id: 0, transcript: 'Good morning.', start_time: '0.0', end_time: '1.3' }],
  };
  expect(readTranscript({ jobName: 'j', status: 'COMPLETED', results })).toEqual({
    text: 'Good morning.',
    language: 'en',
    durationSec: 1.3,
    segments: [{ startSec: 0, endSec: 1.3, text: 'Good morning.' }],
    words: [
      { startSec: 0.1, endSec: 0.4, text: 'Good' },
      { startSec: 0.5, endSec: 1.25, text: 'morning' },
    ],
  });
  expect(readTranscript({ results: {} })).toBeNull();
  expect(readTranscript('cut off')).toBeNull();
});

it('blames the recording only for the reasons that name it', () => {
  const failed = (FailureReason: string) =>
    readTranscribeJob(
      { TranscriptionJobName: 'j', TranscriptionJobStatus: 'FAILED', FailureReason },
      't',
      (text) => text,
    )?.status;
  expect(failed('Invalid file size: file size too large.')?.lineErrors).toHaveLength(1);
  expect(failed("The S3 URI that you provided can't be accessed.")).toMatchObject({
    state: 'failed',
    lineErrors: [],
    error: { message: "The S3 URI that you provided can't be accessed." },
  });
});

it('takes a job without a name or state for unreadable', () => {
  expect(readTranscribeJob(undefined, null, (text) => text)).toBeNull();
  expect(readTranscribeJob({ TranscriptionJobName: 'j' }, null, (text) => text)).toBeNull();
});
