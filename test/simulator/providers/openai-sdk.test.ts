import OpenAI, { toFile } from 'openai';
import { until } from '../../support/until';
import { configureProviders, get, start, stopSimulators } from '../simulators';

afterEach(stopSimulators);

const line = (id: string, body: object = {}) =>
  JSON.stringify({
    custom_id: id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'm', messages: [{ role: 'user', content: id }], ...body },
  });

async function open(settings: object = {}) {
  const url = await start();
  const client = new OpenAI({
    apiKey: 'sk-test',
    baseURL: `${url}/providers/openai/v1`,
    maxRetries: 0,
  });
  await configureProviders(url, settings);
  return { url, client, configure: (change: object) => configureProviders(url, change) };
}

async function upload(client: OpenAI, ...lines: string[]) {
  const file = await toFile(Buffer.from(lines.join('\n')), 'in.jsonl');
  return client.files.create({
    file,
    purpose: 'batch',
    expires_after: { anchor: 'created_at', seconds: 3_600 },
  });
}

async function create(client: OpenAI, ...lines: string[]) {
  const { id } = await upload(client, ...lines);
  return client.batches.create({
    input_file_id: id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    metadata: { nightshift_job: 'job_1' },
  });
}

function untilStatus(client: OpenAI, id: string, status: string): Promise<OpenAI.Batch> {
  const look = async () => {
    const batch = await client.batches.retrieve(id);
    return batch.status === status ? batch : null;
  };
  return until(look, 5_000, `a batch that is ${status}`);
}

const textOf = async (client: OpenAI, file: string | null | undefined) =>
  (await client.files.content(file ?? '')).text();
const linesOf = async (client: OpenAI, file: string | null | undefined) =>
  (await textOf(client, file))
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));

describe('the official client of OpenAI at the simulated provider', () => {
  it('uploads, creates, polls, downloads and deletes', async () => {
    const { url, client, configure } = await open({ hold: true, validating_ms: 20 });
    const input = await upload(client, line('a'), line('b', { messages: [] }), line('c'));
    expect(input).toMatchObject({ object: 'file', purpose: 'batch', filename: 'in.jsonl' });
    expect(input.expires_at).toBe(input.created_at + 3_600);
    expect(await client.files.retrieve(input.id)).toEqual(input);
    const begun = await client.batches.create({
      input_file_id: input.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: { nightshift_job: 'job_1' },
    });
    expect(begun).toMatchObject({ status: 'validating', metadata: { nightshift_job: 'job_1' } });
    await untilStatus(client, begun.id, 'in_progress');
    await configure({ hold: false });
    const batch = await untilStatus(client, begun.id, 'completed');
    expect(batch.request_counts).toEqual({ total: 3, completed: 2, failed: 1 });
    const output = await linesOf(client, batch.output_file_id);
    expect(output.map(({ custom_id: id }) => id)).toEqual(['a', 'c']);
    const direct = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(JSON.parse(line('a')).body),
    });
    expect(output[0].response).toMatchObject({ status_code: 200, body: await direct.json() });
    expect(batch.usage?.output_tokens).toBe(32);
    const [error] = await linesOf(client, batch.error_file_id);
    expect(error).toMatchObject({ custom_id: 'b', response: { status_code: 400 } });
    await client.files.delete(input.id);
    await expect(client.files.retrieve(input.id)).rejects.toMatchObject({ status: 404 });
    expect(await get(url, '/simulator/providers/stats')).toMatchObject({
      calls: { 'files.create': 1, 'batches.create': 1, 'files.content': 2 },
      creates: { job_1: 1 },
      jobs: [{ id: batch.id, nightshift_job: 'job_1', status: 'completed', lines: 3 }],
    });
  });

  it('lists the newest batches first, page by page', async () => {
    const { client, configure } = await open();
    const ids: string[] = [];
    for (const id of ['a', 'b', 'c', 'd', 'e']) ids.unshift((await create(client, line(id))).id);
    const listed: string[] = [];
    for await (const { id } of client.batches.list({ limit: 2 })) listed.push(id);
    expect(listed).toEqual(ids);
    await configure({ max_page: 1 });
    const page = await client.batches.list();
    expect([page.data.length, page.has_more]).toEqual([1, true]);
    const paged: string[] = [];
    for await (const { id } of client.batches.list()) paged.push(id);
    expect(paged).toEqual(ids);
    await configure({ list_lag_ms: 3_600_000 });
    expect((await client.batches.list()).data).toEqual([]);
  });

  it('cancels a running batch, whose first lines are answered', async () => {
    const { client, configure } = await open({ hold: true, cancelling_ms: 3_600_000 });
    const { id } = await create(client, line('a'), line('b'), line('c'), line('d'));
    expect((await client.batches.retrieve(id)).status).toBe('in_progress');
    expect((await client.batches.cancel(id)).status).toBe('cancelling');
    await configure({ cancelling_ms: 0 });
    const batch = await client.batches.retrieve(id);
    expect(batch).toMatchObject({
      status: 'cancelled',
      request_counts: { total: 4, completed: 2, failed: 2 },
    });
    const output = await linesOf(client, batch.output_file_id);
    expect(output.map(({ custom_id: one }) => one)).toEqual(['a', 'b']);
    const errors = await linesOf(client, batch.error_file_id);
    expect(errors.map(({ error }) => error.code)).toEqual(['batch_cancelled', 'batch_cancelled']);
    await expect(client.batches.cancel(id)).rejects.toMatchObject({ status: 409 });
  });

  it('sees batches that expire, fail because of lines, or exceed the quota', async () => {
    const { client, configure } = await open({ ends: ['expired', 'failed'], failed_lines: [2] });
    const expired = await create(client, line('a'), line('b'));
    expect(expired).toMatchObject({ status: 'expired', request_counts: { completed: 1 } });
    const [unanswered] = await linesOf(client, expired.error_file_id);
    expect(unanswered).toMatchObject({ custom_id: 'b', error: { code: 'batch_expired' } });
    expect(await create(client, line('a'), line('b'))).toMatchObject({
      status: 'failed',
      errors: { data: [{ line: 2 }] },
    });
    await configure({ ends: ['completed'], max_enqueued_tokens: 10 });
    expect(await create(client, line('a'))).toMatchObject({
      status: 'failed',
      errors: { data: [{ code: 'token_limit_exceeded', line: null }] },
    });
  });

  it('sees that an invalid input file fails its batch', async () => {
    const { client } = await open();
    const batch = await create(client, line('a'), 'no json', line('a'));
    expect(batch).toMatchObject({ status: 'failed', output_file_id: null });
    expect(batch.errors?.data?.map(({ code, line: at }) => [code, at])).toEqual([
      ['invalid_json_line', 2],
      ['duplicate_custom_id', 3],
    ]);
  });

  it.each<[string, object, object]>([
    ['a window', { completion_window: '48h' }, { status: 400, param: 'completion_window' }],
    ['an endpoint', { endpoint: '/v1/x' }, { status: 400, param: 'endpoint' }],
    ['an input file', { input_file_id: 'file-x' }, { status: 400, param: 'input_file_id' }],
    ['a member', { windows: 1 }, { status: 400, code: 'unknown_parameter', param: 'windows' }],
  ])('is refused with %s that OpenAI does not know', async (_, change, expected) => {
    const { client } = await open();
    const input = await upload(client, line('a'));
    const request = {
      input_file_id: input.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      ...change,
    } as OpenAI.BatchCreateParams;
    await expect(client.batches.create(request)).rejects.toMatchObject(expected);
  });

  it('is refused with a key that was rotated', async () => {
    const { client } = await open({ keys: ['sk-new'] });
    await expect(client.batches.list()).rejects.toMatchObject({ status: 401 });
    expect((await client.withOptions({ apiKey: 'sk-new' }).batches.list()).data).toEqual([]);
  });
});
