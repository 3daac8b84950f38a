import { submitRequest } from '../../../providers/azure-speech/job-request';
import {
  readSpeechJob,
  readSpeechReport,
  speechStatus,
} from '../../../providers/azure-speech/job-state';
import { readSpeechError } from '../../../providers/azure-speech/speech-error';
import { readSpeechTranscript } from '../../../providers/azure-speech/transcript';

const JOB = {
  jobId: `job_${'a'.repeat(32)}`,
  storeId: 'store-1',
  endpoint: '/v1/audio/transcriptions',
  model: 'any',
  lines: 1,
  hops: 0,
};
const URLS = ['https://acme.test/recordings/n1.json.wav?sig=1'];

it('asks for the language that the lines of a job state', () => {
  const recordings = { folder: `${JOB.jobId}/de-DE/`, urls: URLS };
  expect(submitRequest(JOB, recordings, ['en-US', 'fr-FR'])).toEqual({
    displayName: `nightshift.store-1.${JOB.jobId}`,
    locale: 'de-DE',
    contentUrls: URLS,
    properties: {
      timeToLiveHours: 168,
      wordLevelTimestampsEnabled: true,
      displayFormWordLevelTimestampsEnabled: true,
      profanityFilterMode: 'None',
    },
  });
});

it('has one of several languages identified if the lines state none', () => {
  const recordings = { folder: `${JOB.jobId}/any/`, urls: URLS };
  expect(submitRequest(JOB, recordings, ['en-GB', 'fr-FR'])).toMatchObject({
    locale: 'en-GB',
    properties: { languageIdentification: { candidateLocales: ['en-GB', 'fr-FR'] } },
  });
  const { locale, properties } = submitRequest(JOB, recordings, ['en-GB']);
  expect(locale).toBe('en-GB');
  expect(properties).not.toHaveProperty('languageIdentification');
});

const job = (status: string, over: object = {}) => {
  const self = 'https://a.test/speechtotext/transcriptions/5cff?api-version=2024-11-15';
  return readSpeechJob({ self, status, displayName: 'd', ...over });
};

it.each([
  ['NotStarted', 'submitted', true],
  ['Running', 'running', true],
  ['Succeeded', 'completed', true],
  ['Failed', 'failed', true],
  ['Paused', 'running', false],
])('reads the state %s as %s', (word, state, isKnownState) => {
  expect(job(word)).toMatchObject({ externalId: '5cff', word, state, isKnownState });
});

it('takes a job without an id or state for unreadable', () => {
  expect(readSpeechJob({ status: 'Running' })).toBeNull();
  expect(readSpeechJob({ self: 'https://a.test/transcriptions', status: 'Running' })).toBeNull();
  expect(readSpeechJob({ self: 'https://a.test/transcriptions/1' })).toBeNull();
});

it('reads the reason of a job that failed, without secrets', () => {
  const error = { code: 'InvalidUri', message: 'cannot read key-1' };
  const failed = job('Failed', { properties: { error } });
  if (failed === null) throw new Error('unreadable');
  const status = speechStatus(failed, null, (text) => text.replace('key-1', '***'));
  expect(status.error).toEqual({ code: 'InvalidUri', message: 'cannot read ***' });
  expect(status).toMatchObject({ resultFiles: [], hasAllResults: true, counts: null });
});

it('blames the recordings whose data the report calls invalid', () => {
  const details = [
    { source: 'a', status: 'Succeeded' },
    { source: 'b', status: 'Failed', errorKind: 'InvalidData', errorMessage: 'no audio' },
    { source: 'c', status: 'Failed', errorKind: 'InvalidUri', errorMessage: 'no such address' },
    { source: 'd', status: 'Failed' },
  ];
  const report = readSpeechReport({ failedTranscriptionsCount: 3, details });
  expect(report?.succeeded).toBe(1);
  expect(report?.failed.map(({ source, isUnreadable }) => [source, isUnreadable])).toEqual([
    ['b', true],
    ['c', false],
    ['d', false],
  ]);
  const ended = job('Succeeded');
  if (ended === null) throw new Error('unreadable');
  expect(speechStatus(ended, report, (text) => text).counts).toEqual({
    ...{ total: 4, completed: 1, failed: 3 },
  });
  expect(readSpeechReport({ values: [] })).toBeNull();
});

it('puts the phrases of both channels in the order of time', () => {
  const phrase = (channel: number, offsetInTicks: number, display: string, words: object) => ({
    ...{ recognitionStatus: 'Success', channel, offsetInTicks, durationInTicks: 5_000_000.0 },
    ...{ locale: 'de-DE', nBest: [{ display, ...words }, { display: 'worse' }] },
  });
  const span = { offsetInTicks: 30_000_000, durationInTicks: 2_500_000 };
  const transcript = readSpeechTranscript({
    source: 'https://acme.test/n1.json.wav',
    durationInTicks: 45_000_000,
    combinedRecognizedPhrases: [{ display: 'Guten Tag.' }, { display: 'Hallo.' }],
    recognizedPhrases: [
      phrase(0, 30_000_000, 'Guten Tag.', { words: [{ word: 'guten', ...span }] }),
      phrase(1, 0, 'Hallo.', { words: [], displayWords: [{ displayText: 'Hallo.', ...span }] }),
      { recognitionStatus: 'Failure', offsetInTicks: 1, nBest: [] },
    ],
  });
  expect(transcript).toEqual({
    source: 'https://acme.test/n1.json.wav',
    transcription: {
      text: 'Guten Tag. Hallo.',
      language: 'de',
      durationSec: 4.5,
      segments: [
        { startSec: 0, endSec: 0.5, text: 'Hallo.' },
        { startSec: 3, endSec: 3.5, text: 'Guten Tag.' },
      ],
      words: [
        { startSec: 3, endSec: 3.25, text: 'Hallo.' },
        { startSec: 3, endSec: 3.25, text: 'guten' },
      ],
    },
  });
  expect(readSpeechTranscript({ successfulTranscriptionsCount: 1 })).toBeNull();
});

it('reads errors of the service, and of the gateway before it', () => {
  const error = { code: 'NotFound', message: 'There is none.', isQuotaRefusal: false };
  expect(readSpeechError({ code: 'NotFound', message: 'There is none.' })).toEqual(error);
  expect(readSpeechError({ error: { code: '401', message: 'Access denied.' } })).toMatchObject({
    code: '401',
  });
  expect(readSpeechError({ detail: 'a proxy' })).toBeNull();
});
