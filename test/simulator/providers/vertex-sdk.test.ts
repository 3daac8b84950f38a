import { Agent, setGlobalDispatcher } from 'undici';
import { GoogleGenAI, JobState } from '@google/genai';
import { configureProviders, start, stopSimulators } from '../simulators';
import { issueToken } from '../../../simulator/providers/google/access-token';

// The client looks for it among the globals, where the test environment has none.
const dispatcher = new Agent();
beforeAll(() => setGlobalDispatcher(dispatcher));
afterAll(() => dispatcher.close());
afterEach(stopSimulators);

const BUCKET = 'gs://bucket/in';

/** The client asks Google for tokens, whatever its key says. So it is given one. */
async function open(settings: object = {}) {
  const url = await start();
  await configureProviders(url, settings);
  const headers = new Headers({ authorization: `Bearer ${issueToken('k')}` });
  const client = new GoogleGenAI({
    ...{ vertexai: true, project: 'project-1', location: 'us-central1' },
    googleAuthOptions: { authClient: { getRequestHeaders: async () => headers } as never },
    httpOptions: { baseUrl: `${url}/providers/vertex` },
  });
  return { url, client, configure: (to: object) => configureProviders(url, to) };
}

it('is what the official client of Google takes for Vertex AI', async () => {
  const { url, client, configure } = await open({ hold: true, cancelling_ms: 3_600_000 });
  const line = { request: { contents: [{ role: 'user', parts: [{ text: 'q' }] }] } };
  const upload = `${url}/providers/gcs/upload/storage/v1/b/bucket/o?uploadType=media&name=in`;
  const headers = { authorization: `Bearer ${issueToken('k')}` };
  await fetch(upload, { method: 'POST', headers, body: JSON.stringify(line) });
  const create = () =>
    client.batches.create({
      model: 'gemini-2.5-flash',
      src: { gcsUri: [BUCKET], format: 'jsonl' },
      config: { dest: { gcsUri: 'gs://bucket/out', format: 'jsonl' }, displayName: 'd' },
    });
  const held = await create();
  expect(held).toMatchObject({ state: JobState.JOB_STATE_RUNNING, displayName: 'd' });
  await client.batches.cancel({ name: held.name ?? '' });
  expect((await client.batches.get({ name: held.name ?? '' })).state).toBe('JOB_STATE_CANCELLING');
  await configure({ hold: false });
  const { name } = await create();
  const ended = await client.batches.get({ name: name ?? '' });
  expect(ended).toMatchObject({
    state: 'JOB_STATE_SUCCEEDED',
    completionStats: { successfulCount: '1' },
  });
  const names = [];
  for await (const job of await client.batches.list()) names.push(job.name);
  expect(names).toEqual([name, held.name]);
});
