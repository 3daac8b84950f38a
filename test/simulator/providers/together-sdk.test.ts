import Together from 'together-ai';
import { configureProviders, start, stopSimulators } from '../simulators';

afterEach(stopSimulators);

const line = (id: string, body: object = {}) =>
  JSON.stringify({
    custom_id: id,
    body: { model: 'm', messages: [{ role: 'user', content: id }], ...body },
  });

async function open(settings: object = {}) {
  const url = await start();
  await configureProviders(url, settings);
  const baseURL = `${url}/providers/together/v1`;
  const client = new Together({ apiKey: 'tgp', baseURL, maxRetries: 0 });
  return {
    baseURL,
    client,
    configure: (to: object) => configureProviders(url, to),
  };
}

/** The client uploads to its default address only, so the form is sent as the API's pages describe it. */
async function upload(baseURL: string, purpose = 'batch-api'): Promise<Response> {
  const form = new FormData();
  form.append('purpose', purpose);
  form.append('file_name', 'in.jsonl');
  const lines = [line('a'), line('b', { messages: [] })].join('\n');
  form.append('file', new Blob([lines]), 'in.jsonl');
  return fetch(`${baseURL}/files/upload`, { method: 'POST', body: form });
}

async function create(client: Together, baseURL: string) {
  const { id } = (await (await upload(baseURL)).json()) as { id: string };
  const { job } = await client.batches.create({
    input_file_id: id,
    endpoint: '/v1/chat/completions',
  });
  return job ?? {};
}

describe('the official client of Together at the simulated provider', () => {
  it('creates, cancels, lists, downloads and deletes', async () => {
    const { client, baseURL, configure } = await open({ hold: true });
    const held = await create(client, baseURL);
    expect(held).toMatchObject({ status: 'IN_PROGRESS', error: '' });
    expect((await client.batches.cancel(held.id ?? '')).status).toBe('CANCELLED');
    await configure({ hold: false });
    const { id = '' } = await create(client, baseURL);
    const batch = await client.batches.retrieve(id);
    expect(batch).toMatchObject({ status: 'COMPLETED', progress: 100 });
    expect(Date.parse(batch.created_at ?? '')).toBeGreaterThan(0);
    expect((await client.batches.list()).map((one) => one.id)).toEqual([id, held.id]);
    const output = await (await client.files.content(batch.output_file_id ?? '')).text();
    expect(JSON.parse(output)).toMatchObject({ custom_id: 'a', response: { status_code: 200 } });
    const errors = await (await client.files.content(batch.error_file_id ?? '')).text();
    expect(JSON.parse(errors)).toMatchObject({ custom_id: 'b', response: { status_code: 400 } });
    const input = batch.input_file_id ?? '';
    expect(await client.files.retrieve(input)).toMatchObject({ purpose: 'batch-api' });
    expect(await client.files.delete(input)).toMatchObject({ id: input });
  });

  it('sees why a batch failed as one text', async () => {
    const { client, baseURL } = await open({ ends: ['failed'] });
    const batch = await create(client, baseURL);
    expect(batch).toMatchObject({ status: 'FAILED', error: expect.stringMatching(/refuse/) });
  });

  it('is refused with a file of another purpose', async () => {
    const { baseURL } = await open();
    expect((await upload(baseURL, 'batch')).status).toBe(400);
  });
});
