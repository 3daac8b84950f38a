import { batchForm, openTestApi, post, type TestApi, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';

let api: TestApi;
let fileId: string;
beforeAll(async () => {
  api = await openTestApi({
    outbox: { startWaitMs: 50, repeatStartAfterMs: [], repeatCancelAfterMs: [30, 60] },
  });
  fileId = (await api.call(upload(batchForm()))).body.id as string;
}, POSTGRES_START_MS);
afterAll(() => api.close());
afterEach(() => Object.assign(api.batchWorkflows, { fail: false, hang: false }));

const NOW_SEC = 1_700_000_000;
const valid = () => ({
  input_file_id: fileId,
  endpoint: '/v1/chat/completions',
  completion_window: '24h',
});
const create = (body: unknown = valid()) => api.call(post('/v1/batches', body));
const created = async (body: unknown = valid()) => (await create(body)).body.id as string;
const get = (id: string) => api.call({ method: 'GET', url: `/v1/batches/${id}` });
const cancel = (id: string) => api.call({ method: 'POST', url: `/v1/batches/${id}/cancel` });
const row = async (id: string) => {
  const { rows } = await api.database.pool.query<Record<string, unknown>>(
    'select * from batches where id = $1',
    [id],
  );
  return rows[0]!;
};
const set = (id: string, columns: string) =>
  api.database.pool.query(`update batches set ${columns} where id = $1`, [id]);

describe('creating a batch whose workflow cannot be started', () => {
  it.each([{ fail: true }, { hang: true }])(
    'succeeds (%j), and a later sweep starts the workflow',
    async (state) => {
      Object.assign(api.batchWorkflows, state);
      const id = await created();
      expect(await row(id)).toMatchObject({ workflow_started_at: null, status: 'validating' });
      Object.assign(api.batchWorkflows, { fail: false, hang: false });
      api.clock.nowMs += 16_000;
      const sweeper = await sweep();
      api.clock.nowMs -= 16_000;
      expect(sweeper.map((batch) => batch.id)).toContain(id);
      expect((await row(id))['workflow_started_at']).toBeInstanceOf(Date);
      expect(await sweep()).toEqual([]);
    },
  );

  it('tries the start again soon, because most outages are short', async () => {
    const other = await openTestApi({ outbox: { startWaitMs: 50, repeatStartAfterMs: [20, 20] } });
    try {
      other.batchWorkflows.fail = true;
      const file = await other.call(upload(batchForm()));
      const fresh = { ...valid(), input_file_id: file.body.id };
      const { body } = await other.call(post('/v1/batches', fresh));
      other.batchWorkflows.fail = false;
      const ids = () => other.batchWorkflows.started.map(({ id }) => id);
      await until(() => ids().includes(body.id), 5_000, 'the second try');
    } finally {
      await other.close();
    }
  });

  async function sweep() {
    const before = api.batchWorkflows.started.length;
    await api.outbox.startStragglers();
    return api.batchWorkflows.started.slice(before);
  }
});

describe('retrieving a batch', () => {
  it('shows what the row contains', async () => {
    const id = await created();
    await set(
      id,
      `status = 'completed', in_progress_at = 1, finalizing_at = 2, completed_at = 3, model = 'm',
       total = 3, completed = 2, failed = 1, input_tokens = 5, cached_tokens = 4, output_tokens = 3,
       reasoning_tokens = 2, total_tokens = 8, output_file_id = 'file-o', error_file_id = 'file-e',
       errors = '{"object":"list","data":[]}'`,
    );
    expect((await get(id)).body).toMatchObject({
      status: 'completed',
      model: 'm',
      in_progress_at: 1,
      finalizing_at: 2,
      completed_at: 3,
      request_counts: { total: 3, completed: 2, failed: 1 },
      usage: {
        input_tokens: 5,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 3,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 8,
      },
      output_file_id: 'file-o',
      error_file_id: 'file-e',
      errors: { object: 'list', data: [] },
    });
  });

  it('shows no counts before validation has ended', async () => {
    const id = await created();
    await set(id, 'total = 7');
    const counts = async () => (await get(id)).body.request_counts;
    expect(await counts()).toEqual({ total: 0, completed: 0, failed: 0 });
    await set(id, `status = 'in_progress'`);
    expect(await counts()).toEqual({ total: 7, completed: 0, failed: 0 });
  });

  it.each(['', '/cancel'])(
    'answers 400 to an id of another kind and 404 to an unknown one: /v1/batches/{id}%s',
    async (action) => {
      const method = action === '' ? ('GET' as const) : ('POST' as const);
      const wrong = await api.call({ method, url: `/v1/batches/job-1${action}` });
      expect(wrong.status).toBe(400);
      expect(wrong.body.error).toMatchObject({ param: 'batch_id', code: 'invalid_value' });
      for (const id of ['batch_none', 'batch_%00', `batch_${'a'.repeat(8_000)}`]) {
        const unknown = await api.call({ method, url: `/v1/batches/${id}${action}` });
        expect(unknown.status).toBe(404);
        expect(unknown.body.error).toMatchObject({
          message: expect.stringContaining('No batch found with id'),
          param: null,
          code: null,
        });
      }
    },
  );
});

describe('cancelling a batch', () => {
  it.each(['validating', 'in_progress', 'finalizing'])(
    'claims the row of a batch that is %s, and signals until the workflow has received it',
    async (status) => {
      const id = await created();
      await set(id, `status = '${status}'`);
      const answer = await cancel(id);
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ status: 'cancelling', cancelling_at: NOW_SEC });
      expect(await row(id)).toMatchObject({ stop_cause: 'cancelled' });
      const signals = () => api.batchWorkflows.cancelled.filter((batchId) => batchId === id).length;
      await until(() => signals() === 3, 5_000, 'three signals');
      const again = await cancel(id);
      expect(again.status).toBe(200);
      expect(again.body).toEqual(answer.body);
    },
  );

  it('stops signalling when the workflow has received the signal', async () => {
    const id = await created();
    // Noted before the cancel: a signal may be repeated before a later statement has ended.
    await set(id, 'stop_taken_at = now()');
    await cancel(id);
    const other = await created();
    await cancel(other);
    const signals = (batch: string) =>
      api.batchWorkflows.cancelled.filter((b) => b === batch).length;
    await until(() => signals(other) === 3, 5_000, 'the signals of a later cancel');
    expect(signals(id)).toBe(1);
  });

  it('signals again if the first signal failed', async () => {
    const id = await created();
    api.batchWorkflows.fail = true;
    expect((await cancel(id)).body.status).toBe('cancelling');
    api.batchWorkflows.fail = false;
    await until(() => api.batchWorkflows.cancelled.includes(id), 5_000, 'a signal');
  });

  it('answers a cancelled batch unchanged', async () => {
    const id = await created();
    await set(id, `status = 'cancelled', stop_cause = 'cancelled', cancelled_at = 9`);
    const answer = await cancel(id);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ status: 'cancelled', cancelled_at: 9 });
  });

  it('changes nothing if another cause came first', async () => {
    const id = await created();
    await set(id, `status = 'in_progress', stop_cause = 'expired'`);
    const answer = await cancel(id);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ status: 'in_progress', cancelling_at: null });
    expect(await row(id)).toMatchObject({ stop_cause: 'expired' });
    expect(api.batchWorkflows.cancelled).not.toContain(id);
  });

  it.each(['completed', 'failed', 'expired'])('answers 409 if the batch has %s', async (status) => {
    const id = await created();
    await set(id, `status = '${status}'`);
    const answer = await cancel(id);
    expect(answer.status).toBe(409);
    expect(answer.headers['x-should-retry']).toBe('false');
    expect(answer.body.error).toEqual({
      message: expect.stringContaining(status),
      type: 'invalid_request_error',
      param: null,
      code: null,
    });
  });

  it('lets one of several simultaneous cancels claim the row', async () => {
    const id = await created();
    const answers = await Promise.all(Array.from({ length: 8 }, () => cancel(id)));
    expect(answers.map((answer) => answer.body.status)).toEqual(Array(8).fill('cancelling'));
    // Only the claim signals: once, and twice again.
    const later = await created();
    await cancel(later);
    const signals = (batch: string) =>
      api.batchWorkflows.cancelled.filter((b) => b === batch).length;
    const isDone = () => signals(later) === 3 && signals(id) >= 3;
    await until(isDone, 5_000, 'the signals of this and of a later cancel');
    expect(signals(id)).toBe(3);
  });

  it('accepts any body, and a JSON content type without a body', async () => {
    const headers = { 'content-type': 'application/json' };
    for (const payload of ['', 'broken {']) {
      const url = `/v1/batches/${await created()}/cancel`;
      expect((await api.call({ method: 'POST', url, headers, payload })).status).toBe(200);
    }
  });
});
