import { encodeInputLine } from '../../../providers/vertex/input-line';
import { readJob } from '../../../providers/vertex/job-object';
import { createBody } from '../../../providers/vertex/job-request';
import { readResultLine } from '../../../providers/vertex/result-line';
import { STRICT } from '../calls';

const same = (text: string) => text;
const NAME = 'projects/1/locations/us-central1/batchPredictionJobs/77';
const job = (members: object) => readJob({ name: NAME, ...members }, same)?.status;
const JOB = {
  ...{ jobId: `job_${'a'.repeat(32)}`, storeId: 'f0', model: 'm', lines: 1, hops: 0 },
  endpoint: '/v1/chat/completions',
};

it('reads counts that are texts, absent or unknown', () => {
  const state = 'JOB_STATE_RUNNING';
  const counts = (completionStats: object, more: object = {}) =>
    job({ state, completionStats, ...more })?.counts;
  const stats = { successfulCount: '5', incompleteCount: '3' };
  expect(counts(stats)).toEqual({ total: 8, completed: 5, failed: 0 });
  expect(counts({ successfulCount: '5', incompleteCount: '-1' })).toBeNull();
  expect(counts({ ...stats, incompleteCount: '-1' }, { state: 'JOB_STATE_SUCCEEDED' })).toEqual({
    ...{ total: 5, completed: 5, failed: 0 },
  });
});

it('takes a job with failed lines for completed, and a used-up quota for no failure', () => {
  expect(job({ state: 'JOB_STATE_PARTIALLY_SUCCEEDED' })).toMatchObject({
    ...{ externalId: '77', state: 'completed', isKnownState: true, hasAllResults: false },
  });
  const error = { code: 8, message: 'no quota' };
  expect(job({ state: 'JOB_STATE_FAILED', error })).toMatchObject({ isQuotaRefusal: true });
  const outputInfo = { gcsOutputDirectory: 'gs://b/out/' };
  expect(job({ state: 'JOB_STATE_FAILED', error, outputInfo })).toMatchObject({
    ...{ isQuotaRefusal: false, resultFiles: ['gs://b/out'] },
  });
  expect(readJob({ state: 'JOB_STATE_FAILED' }, same)).toBeNull();
});

it('names models of Google by their publisher, and other models by their path', () => {
  const places = { input: 'gs://b/in', output: 'gs://b/out' };
  const tuned = 'projects/1/locations/us/models/9';
  expect(createBody(JOB, places)).toMatchObject({ model: 'publishers/google/models/m' });
  expect(createBody({ ...JOB, model: tuned }, places)).toMatchObject({ model: tuned });
});

it('keeps labels of the settings beside the one of the line', () => {
  const body = Buffer.from('{"model":"m","messages":[{"role":"user","content":"q"}]}');
  const translation = { ...STRICT, extraBody: { labels: { team: 'a' } } };
  const { endpoint } = JOB;
  const line = encodeInputLine({ wireId: 'n1', endpoint, model: 'm', body, translation });
  if (line.kind === 'refused') throw new Error(line.message);
  expect(JSON.parse(line.bytes.toString())).toMatchObject({
    request: { labels: { team: 'a', nightshift_line: 'n1' } },
  });
});

it.each<[string, object]>([
  ['', { kind: 'answer', status: 200 }],
  [
    'Bad Request: {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}',
    { kind: 'answer', status: 400 },
  ],
  ['Something broke.', { kind: 'failed', error: { code: null, message: 'Something broke.' } }],
])('reads the result of a line with the status "%s"', (status, result) => {
  const response = {
    candidates: [{ content: { parts: [{ text: 'a' }] }, finishReason: 'STOP' }],
  };
  const line = { status, request: { labels: { nightshift_line: 'n1' } }, response };
  const read = readResultLine(
    Buffer.from(JSON.stringify(line)),
    { model: 'm', createdSec: 1 },
    same,
  );
  expect(read).toMatchObject({ wireId: 'n1', ...result });
  expect(
    readResultLine(Buffer.from('{"request":{}}'), { model: 'm', createdSec: 1 }, same),
  ).toBeNull();
});
