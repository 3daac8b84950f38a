import { recognizeRequest } from '../../../providers/google-speech/job-request';
import { readOperation, speechStatus } from '../../../providers/google-speech/operation';
import { readSpeechTranscript } from '../../../providers/google-speech/transcript';
import { openProvider } from '../../../providers/registry';
import {
  created,
  ended,
  idOf,
  ok,
  recordings,
  remainsOf,
  resultsOf,
  runWith,
  signal,
  uploaded,
} from '../conformance/steps';
import { openGoogleHost } from '../google-host';
import { closeHosts, QUICK } from '../simulated-host';

beforeAll(() => runWith(recordings(['n1', 'n2'])));
afterEach(closeHosts);

const NAME = 'projects/1/locations/us/operations/77';
const JOB = {
  ...{ jobId: `job_${'a'.repeat(32)}`, storeId: 'store-0', model: 'telephony', lines: 1, hops: 0 },
  endpoint: '/v1/audio/transcriptions',
};

async function open() {
  const host = await openGoogleHost();
  const provider = openProvider({
    ...{ type: 'google_speech', project: 'project-1', location: 'us', locales: ['en-US'] },
    storage: { bucket: 'bucket', prefix: '', url: host.api('gcs') },
    ...{ url: host.api('google-speech'), apiKey: host.keyFile },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { host, provider };
}

function statusOf(operation: object) {
  const read = readOperation({ name: NAME, ...operation });
  if (read === null) throw new Error('unreadable');
  return speechStatus(read, (text) => text);
}

it('cancels a job that runs, and says that one has ended', async () => {
  const { host, provider } = await open();
  await host.configure({ hold: true });
  const id = idOf(await created(provider, await uploaded(provider)));
  expect(await provider.cancel(id, { signal })).toEqual(ok('requested'));
  const status = await ended(provider, id);
  expect(status).toMatchObject({ state: 'cancelled', resultFiles: [], hasAllResults: true });
  expect((await resultsOf(provider, status)).results).toEqual([]);
  expect(await provider.cancel(id, { signal })).toEqual(ok('ended'));
});

it('deletes the recordings and transcripts of its job only', async () => {
  const { host, provider } = await open();
  await uploaded(provider, undefined, `job_${'d'.repeat(32)}`);
  const job = await uploaded(provider);
  const status = await ended(provider, idOf(await created(provider, job)));
  expect((await host.stats()).files).toHaveLength(6);
  expect((await provider.cleanup(remainsOf(job, status), { signal })).outcome).toBe('ok');
  expect((await host.stats()).files).toHaveLength(2);
});

it('lists the open jobs of this installation since a time', async () => {
  const { host, provider } = await open();
  idOf(await created(provider, await uploaded(provider)));
  await host.configure({ hold: true, max_page: 1 });
  const jobId = `job_${'d'.repeat(32)}`;
  const externalId = idOf(await created(provider, await uploaded(provider, undefined, jobId)));
  const marked = (storeId: string, sinceMs: number) =>
    provider.listMarked?.({ storeId, sinceMs }, { signal });
  const nowMs = Date.now();
  expect(await marked('store-0', nowMs - 3_600_000)).toEqual(ok([{ externalId, jobId }]));
  expect(await marked('store-1', nowMs - 3_600_000)).toEqual(ok([]));
  expect(await marked('store-0', nowMs + 60_000)).toEqual(ok([]));
});

it.each<[string, readonly string[]]>([
  ['any', ['en-US', 'de-DE']],
  ['fr-FR', ['fr-FR']],
])('asks for the language that its lines state, or one of the settings: %s', (word, codes) => {
  const folder = `${JOB.jobId}/${word}/`;
  const places = { folder, uris: ['gs://b/x.wav'], output: 'gs://b/out/' };
  expect(recognizeRequest(JOB, places, ['en-US', 'de-DE'])).toMatchObject({
    config: { model: 'telephony', languageCodes: codes },
    files: [{ uri: 'gs://b/x.wav' }],
    processingStrategy: 'DYNAMIC_BATCHING',
  });
});

it.each<[string, object, object]>([
  ['one that runs', { metadata: {} }, { state: 'running', hasAllResults: true, counts: null }],
  [
    'one without a quota',
    { done: true, error: { code: 8, message: 'no' } },
    { state: 'failed', isQuotaRefusal: true, providerState: 'RESOURCE_EXHAUSTED' },
  ],
  [
    'a cancelled one',
    { done: true, error: { code: 1, message: 'no' } },
    { state: 'cancelled', isQuotaRefusal: false },
  ],
  [
    'one whose recordings have ended differently',
    {
      done: true,
      response: {
        results: {
          a: { cloudStorageResult: { uri: 'gs://b/a.json' } },
          b: { uri: 'gs://b/b.json' },
          c: { error: { code: 3, message: 'no' } },
        },
      },
    },
    {
      ...{ state: 'completed', hasAllResults: true },
      counts: { total: 3, completed: 2, failed: 1 },
      resultFiles: ['gs://b/a.json', 'gs://b/b.json'],
    },
  ],
  [
    'one whose transcripts are not named yet',
    { done: true, response: { results: { a: {} } } },
    { state: 'completed', hasAllResults: false },
  ],
])('reads an operation: %s', (_, operation, status) => {
  expect(statusOf(operation)).toMatchObject({ externalId: '77', ...status });
});

it('reads no operation from something else', () => {
  expect(readOperation({ done: true })).toBeNull();
  expect(readOperation({ name: 'projects/1/locations/us/recognizers/x' })).toBeNull();
});

it('reads a transcript of several results', () => {
  const transcript = readSpeechTranscript({
    results: [
      {
        alternatives: [
          {
            transcript: 'Guten Tag.',
            words: [
              { word: 'Guten', endOffset: '0.400s' },
              { word: 'Tag.', startOffset: '0.400s', endOffset: '1s' },
            ],
          },
        ],
        resultEndOffset: '1.500s',
        languageCode: 'de-de',
      },
      { alternatives: [{ transcript: ' Hallo.' }], resultEndOffset: '3s' },
      { resultEndOffset: '4s' },
    ],
  });
  expect(transcript).toEqual({
    text: 'Guten Tag. Hallo.',
    language: 'de',
    durationSec: 4,
    segments: [
      { startSec: 0, endSec: 1.5, text: 'Guten Tag.' },
      { startSec: 1.5, endSec: 3, text: 'Hallo.' },
    ],
    words: [
      { startSec: 0, endSec: 0.4, text: 'Guten' },
      { startSec: 0.4, endSec: 1, text: 'Tag.' },
    ],
  });
});

it('reads a recording in which nothing is said, and nothing that is no transcript', () => {
  expect(readSpeechTranscript({})).toMatchObject({ text: '', durationSec: 0, language: null });
  expect(readSpeechTranscript({ results: 'none' })).toBeNull();
  expect(readSpeechTranscript(undefined)).toBeNull();
});
