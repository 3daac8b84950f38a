import { GoogleGenAI, JobState } from '@google/genai';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { configureProviders, start, stopSimulators } from '../simulators';

afterEach(stopSimulators);

const MODEL = 'gemini-2.5-flash';
const line = (key: string, generationConfig?: object) =>
  JSON.stringify({
    key,
    request: { contents: [{ role: 'user', parts: [{ text: key }] }], generationConfig },
  });

async function open(settings: object = {}) {
  const url = await start();
  await configureProviders(url, settings);
  // With a fetch of its own, the client does not look for a dispatcher that jest's globals do not have.
  const httpOptions = { baseUrl: `${url}/providers/gemini`, fetch: globalThis.fetch };
  const client = new GoogleGenAI({ apiKey: 'key-1', httpOptions });
  const upload = async (...lines: string[]) => {
    const file = new Blob([lines.map((one) => `${one}\n`).join('')]);
    const config = { displayName: 'in', mimeType: 'application/jsonl' };
    return (await client.files.upload({ file, config })).name ?? '';
  };
  const create = async (displayName: string, ...lines: string[]) => {
    const src = await upload(...lines);
    return client.batches.create({ model: MODEL, src, config: { displayName } });
  };
  const results = async (file: string) => {
    const downloadPath = path.join(tmpdir(), `gemini-sdk-${process.pid}.jsonl`);
    await client.files.download({ file, downloadPath });
    const text = readFileSync(downloadPath, 'utf8');
    rmSync(downloadPath);
    return text
      .trim()
      .split('\n')
      .map((one) => JSON.parse(one) as Record<string, unknown>);
  };
  const configure = (to: object) => configureProviders(url, to);
  return { client, upload, create, results, configure };
}

describe('the official client of Google at the simulated Gemini API', () => {
  it('uploads, creates, looks, downloads and deletes', async () => {
    const { client, create, results } = await open();
    const { name = '' } = await create('two', line('a'), line('b', { maxOutputTokens: 3 }));
    const batch = await client.batches.get({ name });
    expect(batch).toMatchObject({
      ...{ name, displayName: 'two', model: `models/${MODEL}` },
      state: JobState.JOB_STATE_SUCCEEDED,
      createTime: expect.any(String),
    });
    const file = batch.dest?.fileName ?? '';
    const answers = await results(file);
    expect(answers.map(({ key }) => key)).toEqual(['a', 'b']);
    expect(answers[0]).toMatchObject({
      response: {
        candidates: [{ content: { parts: [{ text: expect.any(String) }] } }],
        usageMetadata: { promptTokenCount: expect.any(Number) },
      },
    });
    await expect(client.files.delete({ name: file })).rejects.toMatchObject({ status: 403 });
    await client.batches.delete({ name });
    await expect(client.batches.get({ name })).rejects.toMatchObject({ status: 404 });
    await expect(client.files.get({ name: file })).rejects.toMatchObject({ status: 403 });
  });

  it('lists batches newest first, page by page, and cancels one', async () => {
    const { client, create } = await open({ hold: true, max_page: 1 });
    const created = [await create('one', line('a')), await create('two', line('a'))];
    const names: (string | undefined)[] = [];
    for await (const { name } of await client.batches.list({ config: { pageSize: 5 } })) {
      names.push(name);
    }
    expect(names).toEqual(created.map(({ name }) => name).reverse());
    const name = names[0] ?? '';
    await client.batches.cancel({ name });
    expect((await client.batches.get({ name })).state).toBe(JobState.JOB_STATE_CANCELLED);
    await expect(client.batches.cancel({ name })).rejects.toMatchObject({ status: 400 });
  });

  it('gets errors of lines and of keys as the service writes them', async () => {
    const { client, create, results, configure } = await open();
    const { name = '' } = await create('bad', '{"key":"a","request":{}}', line('b'));
    const { dest } = await client.batches.get({ name });
    const [refused, answered] = await results(dest?.fileName ?? '');
    expect(refused).toMatchObject({ key: 'a', error: { code: 3, message: expect.any(String) } });
    expect(answered).toHaveProperty('response');
    await configure({ keys: ['key-2'] });
    await expect(client.batches.get({ name })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('API_KEY_INVALID'),
    });
  });
});
