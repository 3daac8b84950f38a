import { readSarvamJob } from '../../../providers/sarvam/job-state';
import { languageOfSarvam, sarvamLanguage } from '../../../providers/sarvam/languages';
import { readSarvamTranscript } from '../../../providers/sarvam/transcript';
import { openHost } from '../conformance/open-host';
import { created, idOf, recordings, runWith, uploadOf, uploaded } from '../conformance/steps';
import { closeHosts } from '../simulated-host';

beforeAll(() => runWith(recordings(['n1', 'n2'])));
afterEach(closeHosts);

const plain = (text: string) => text;
const job = (members: object) => readSarvamJob({ job_id: 'j', ...members }, plain);

it('knows the languages of India by their own codes', () => {
  const said = ['hi', 'en', 'en-US', 'or', 'kok', 'ta-IN'].map(sarvamLanguage);
  expect(said).toEqual(['hi-IN', 'en-IN', 'en-IN', 'od-IN', 'kok-IN', 'ta-IN']);
  expect([sarvamLanguage('de'), sarvamLanguage('')]).toEqual([undefined, undefined]);
  expect(['od-IN', 'hi-IN', 'unknown', null].map(languageOfSarvam)).toEqual([
    ...['or', 'hi', null, null],
  ]);
});

it('has the language of a line stated, or identified', async () => {
  const { provider } = await openHost({ type: 'sarvam' }, 'sarvam');
  const line = (language: string) =>
    provider.encode({
      wireId: 'n1',
      endpoint: '/v1/audio/transcriptions',
      model: null,
      body: Buffer.from(JSON.stringify({ file_id: 'file-1', language })),
      translation: { dropParams: false, defaultMaxTokens: 1, extraBody: {} },
    });
  expect(line('hi')).toMatchObject({ kind: 'line', common: 'hi-IN' });
  expect(line('de')).toMatchObject({ kind: 'refused', param: 'language' });
});

it.each([
  ['Accepted', 'submitted', false],
  ['Pending', 'submitted', true],
  ['Running', 'running', true],
  ['Completed', 'completed', true],
  ['Failed', 'failed', true],
  ['PartlyDone', 'running', true],
])('reads the state %s as %s', (job_state, state, isStarted) => {
  expect(job({ job_state })).toMatchObject({ isStarted, status: { state } });
});

it('takes a job without an id or state for unreadable', () => {
  expect(readSarvamJob({ job_state: 'Running' }, plain)).toBeNull();
  expect(job({})).toBeNull();
});

it('blames a recording only for an error of the API that names it', () => {
  const inputs = [{ file_name: 'n1.json.wav' }];
  const detail = (state: string, exception_name: string) => ({ inputs, state, exception_name });
  const read = job({
    job_state: 'Completed',
    total_files: 4,
    successful_files_count: 1,
    failed_files_count: 3,
    job_details: [
      { inputs, outputs: [{ file_name: '0.json' }], state: 'Success' },
      detail('API Error', 'UnprocessableEntityError'),
      detail('API Error', 'TooManyRequestsError'),
      detail('Internal Server Error', 'BadRequestError'),
    ],
  });
  expect(read?.files.map(({ output, isUnreadable }) => [output, isUnreadable])).toEqual([
    ['0.json', false],
    [null, true],
    [null, false],
    [null, false],
  ]);
  expect(read?.status).toMatchObject({
    counts: { total: 4, completed: 1, failed: 3 },
    hasAllResults: true,
  });
});

it('waits for the details of all recordings', () => {
  const ended = { job_state: 'Completed', total_files: 2 };
  const inputs = [{ file_name: 'n1.json.wav' }];
  expect(job({ ...ended, job_details: [{ inputs }] })?.status.hasAllResults).toBe(false);
  const both = { ...ended, job_details: [{ inputs }, { inputs }] };
  expect(job(both)?.status.hasAllResults).toBe(true);
});

it('reads the phrases of a transcript, and its language', () => {
  const timestamps = {
    words: ['नमस्ते।', 'धन्यवाद।'],
    start_time_seconds: [0.5, 2],
    end_time_seconds: [1.25, 3.5],
  };
  const read = readSarvamTranscript({
    request_id: 'r',
    transcript: 'नमस्ते। धन्यवाद।',
    language_code: 'hi-IN',
    timestamps,
    diarized_transcript: null,
  });
  expect(read).toEqual({
    text: 'नमस्ते। धन्यवाद।',
    language: 'hi',
    durationSec: 3.5,
    segments: [
      { startSec: 0.5, endSec: 1.25, text: 'नमस्ते।' },
      { startSec: 2, endSec: 3.5, text: 'धन्यवाद।' },
    ],
    words: [],
  });
  expect(readSarvamTranscript({ transcript: 'short', timestamps: null })).toMatchObject({
    ...{ text: 'short', language: null, durationSec: 0, segments: [] },
  });
  expect(readSarvamTranscript({ error: {} })).toBeNull();
});

it('makes a job of its own for each upload, which does nothing before it is started', async () => {
  const { provider, stats } = await openHost({ type: 'sarvam' }, 'sarvam');
  const first = await uploadOf(provider);
  const second = await uploaded(provider);
  expect(first).not.toEqual({ outcome: 'ok', value: second.remoteInput });
  expect((await stats()).creates).toEqual({});
});

it('starts a job once, however often it is asked to', async () => {
  const { provider, stats } = await openHost({ type: 'sarvam' }, 'sarvam');
  const started = await uploaded(provider);
  const id = idOf(await created(provider, started));
  expect(idOf(await created(provider, started))).toBe(id);
  expect((await stats()).creates).toEqual({ 'n1.verbose_json.wav': 1 });
});

it('keeps the refusal of a job that was surely not started', async () => {
  const { provider, configure } = await openHost({ type: 'sarvam' }, 'sarvam');
  const unstarted = await uploaded(provider);
  await configure({ faults: [{ call: 'batches.create', status: 400 }] });
  expect((await created(provider, unstarted)).outcome).toBe('refused');
  const looks = { call: 'batches.retrieve', status: 500 };
  await configure({ faults: [{ call: 'batches.create', status: 400 }, looks] });
  expect((await created(provider, unstarted)).outcome).toBe('ambiguous');
});
