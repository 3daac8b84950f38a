import type { Handler } from '../openai/host-fixtures';
import * as host from '../openai/host-fixtures';

const { JOB, marker, reply, send, signal } = host;
const open = (handler: Handler) => host.open(handler, 'mistral');
const HOUR_MS = 3_600_000;
const job = (id: string, changes: object = {}) => ({
  ...{ id, object: 'batch', status: 'RUNNING', created_at: 2_000, input_files: ['file-1'] },
  ...{ total_requests: 2, succeeded_requests: 0, failed_requests: 0, errors: [] },
  ...changes,
});

afterEach(host.closeAll);

describe('a create at Mistral', () => {
  it('names the model, and the hours that end before the job is given up', async () => {
    const { provider, requests } = await open((_, response) => reply(response, 200, job('j1')));
    const window = provider.completionWindow(26.5 * HOUR_MS);
    const made = await provider.create({ ...JOB, window, inline: null }, send);
    expect(made).toEqual({
      outcome: 'accepted',
      value: { externalId: 'j1', createdAtMs: 2_000_000 },
    });
    expect(requests[0]?.call).toBe('POST /v1/batch/jobs');
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      input_files: ['file-1'],
      endpoint: '/v1/chat/completions',
      model: 'm',
      timeout_hours: 26,
      metadata: marker,
    });
    expect([1, 999 * HOUR_MS].map(provider.completionWindow)).toEqual(['1', '168']);
  });

  it.each<[string, object, string | null]>([
    ['a message', { object: 'error', message: 'no', type: 'bad', code: '1500' }, '1500'],
    [
      'a detail in the message',
      { message: { detail: [{ msg: 'no', loc: [] }] }, type: 'bad' },
      'bad',
    ],
    ['a detail', { detail: [{ msg: 'no', type: 'x' }] }, null],
    ['a detail that is a text', { detail: 'no' }, null],
  ])('is refused in the words of an error with %s', async (_, body, code) => {
    const { provider } = await open((__, response) => reply(response, 422, body));
    expect(await provider.create({ ...JOB, window: '24', inline: null }, send)).toMatchObject({
      outcome: 'refused',
      failure: { message: 'no', code },
    });
  });

  it('does not take the error page of another server for a refusal', async () => {
    const { provider } = await open((_, response) => reply(response, 404, { error: 'no' }));
    const made = await provider.create({ ...JOB, window: '24', inline: null }, send);
    expect(made.outcome).toBe('auth');
  });
});

describe('a look-up at Mistral', () => {
  it('reads numbered pages until it has seen all jobs, also if pages are small', async () => {
    const pages = [[job('j3', { input_files: ['x'] })], [job('j2', { metadata: marker })]];
    const { provider, calls } = await open((_, response) =>
      reply(response, 200, { object: 'list', data: pages.shift(), total: 2 }),
    );
    const found = await provider.find(JOB, { signal });
    expect(found).toMatchObject({ value: { kind: 'job', job: { externalId: 'j2' } } });
    expect(calls()).toEqual([
      'GET /v1/batch/jobs?page=0&page_size=100&order_by=-created',
      'GET /v1/batch/jobs?page=1&page_size=100&order_by=-created',
    ]);
  });

  it('is certain of an account without jobs, but not of a list without a total', async () => {
    const answers = [{ object: 'list', total: 0 }, { data: [job('j1', { input_files: ['x'] })] }];
    const { provider } = await open((_, response) => reply(response, 200, answers.shift()));
    const none = await provider.find(JOB, { signal });
    expect(none).toEqual({ outcome: 'ok', value: { kind: 'none' } });
    expect((await provider.find(JOB, { signal })).outcome).toBe('transient');
  });
});

describe('a job of Mistral', () => {
  it.each<[string, object, object]>([
    ['QUEUED', {}, { state: 'submitted' }],
    ['CANCELLATION_REQUESTED', {}, { state: 'cancelling' }],
    ['NEW_WORD', {}, { state: 'running', isKnownState: false }],
    [
      'FAILED',
      { errors: [{ message: 'bad file', count: 2 }] },
      { state: 'failed', error: { message: 'bad file' } },
    ],
    [
      'SUCCESS',
      { succeeded_requests: 1, failed_requests: 1, output_file: 'o', errors: [{ message: 'x' }] },
      { state: 'completed', hasAllResults: false, error: null, resultFiles: ['o'] },
    ],
    [
      'TIMEOUT_EXCEEDED',
      { succeeded_requests: 1, output_file: 'o', error_file: null },
      { state: 'expired', hasAllResults: true, counts: { total: 2, completed: 1, failed: 0 } },
    ],
  ])('is read in the state %s', async (status, changes, expected) => {
    const { provider } = await open((_, response) =>
      reply(response, 200, job('j1', { status, ...changes })),
    );
    expect(await provider.status('j1', { signal })).toMatchObject({ value: expected });
  });

  it('has ended if a look says so after its cancel was refused', async () => {
    const { provider } = await open(({ call }, response) =>
      call.startsWith('POST')
        ? reply(response, 422, { detail: 'ended' })
        : reply(response, 200, job('j1', { status: 'SUCCESS' })),
    );
    expect(await provider.cancel('j1', { signal })).toEqual({ outcome: 'ok', value: 'ended' });
  });
});
