import Groq, { toFile } from 'groq-sdk';
import { configureProviders, start, stopSimulators } from '../simulators';

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
  await configureProviders(url, settings);
  const client = new Groq({ apiKey: 'gsk', baseURL: `${url}/providers/groq`, maxRetries: 0 });
  return { url, client, configure: (to: object) => configureProviders(url, to) };
}

async function create(client: Groq, window = '24h') {
  const lines = [line('a'), line('b', { messages: [] })].join('\n');
  const file = await toFile(Buffer.from(lines), 'in.jsonl');
  const { id = '' } = await client.files.create({ file, purpose: 'batch' });
  return client.batches.create({
    input_file_id: id,
    endpoint: '/v1/chat/completions',
    completion_window: window,
    metadata: { nightshift_job: 'job_1' },
  });
}

describe('the official client of Groq at the simulated provider', () => {
  it('uploads, creates, cancels, lists, downloads and deletes', async () => {
    const { client, configure } = await open({ hold: true, cancelling_ms: 3_600_000 });
    const held = await create(client, '7d');
    expect(held).toMatchObject({ status: 'in_progress', metadata: { nightshift_job: 'job_1' } });
    expect((await client.batches.cancel(held.id)).status).toBe('cancelling');
    await configure({ hold: false });
    const { id } = await create(client);
    const batch = await client.batches.retrieve(id);
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 2, completed: 1, failed: 1 },
    });
    expect(batch).not.toHaveProperty('usage');
    expect((await client.batches.list()).data.map((one) => one.id)).toEqual([id, held.id]);
    const output = await (await client.files.content(batch.output_file_id ?? '')).text();
    expect(JSON.parse(output)).toMatchObject({ custom_id: 'a', response: { status_code: 200 } });
    expect(await client.files.delete(batch.input_file_id)).toMatchObject({ deleted: true });
    await expect(client.files.info(batch.input_file_id)).rejects.toMatchObject({ status: 404 });
  });

  it('is refused with a window that Groq does not know', async () => {
    const { client } = await open();
    await expect(create(client, '8d')).rejects.toMatchObject({ status: 400 });
  });
});
