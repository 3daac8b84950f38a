// Runs the whole flow of a batch with the official client of Mistral, which is an ES module only, and prints what it saw
// as one line of JSON. Usage: node mistral-client.mjs URL
import { Mistral } from '@mistralai/mistralai';

const [, , url = ''] = process.argv;
const client = new Mistral({ apiKey: 'key', serverURL: `${url}/providers/mistral` });
const { files } = client;
const { jobs } = client.batch;

const line = (id, body) => JSON.stringify({ custom_id: id, body: { model: 'm', ...body } });
const lines = [
  line('a', { messages: [{ role: 'user', content: 'a' }] }),
  line('b', { messages: [] }),
].join('\n');

async function create(timeoutHours) {
  const file = { fileName: 'in.jsonl', content: new Blob([lines]) };
  const { id } = await files.upload({ file, purpose: 'batch' });
  return jobs.create({
    inputFiles: [id],
    endpoint: '/v1/chat/completions',
    model: 'm',
    timeoutHours,
    metadata: { nightshift_job: 'job_1' },
  });
}

async function configure(change) {
  const init = { method: 'PUT', body: JSON.stringify(change) };
  await fetch(`${url}/simulator/providers/config`, init);
}

const text = async (fileId) => new Response(await files.download({ fileId })).text();

await configure({ hold: true, cancelling_ms: 3_600_000 });
const held = await create(24);
const cancelled = await jobs.cancel({ jobId: held.id });
await configure({ hold: false, cancelling_ms: 0 });
const { id } = await create(24);
const ended = await jobs.get({ jobId: id });
const page = await jobs.list({ pageSize: 1, page: 1, orderBy: '-created' });
const [fileId] = ended.inputFiles;
await configure({ ends: ['expired'] });
const expired = await create(24);
const seen = {
  held,
  cancelled,
  ended,
  page: { total: page.total, isHeld: page.data[0].id === held.id },
  output: JSON.parse(await text(ended.outputFile)),
  errors: JSON.parse(await text(ended.errorFile)),
  deleted: (await files.delete({ fileId })).deleted,
  expired,
  refusal: await create(169).catch(({ statusCode }) => statusCode),
};
process.stdout.write(JSON.stringify(seen));
