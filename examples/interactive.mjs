/**
 * Streams one answer through the gateway of a running stack (`npm start`), beside the batches that it runs.
 *
 *     node examples/interactive.mjs "What is a batch?"
 */
import OpenAI from 'openai';

const { OPENAI_BASE_URL = 'http://127.0.0.1:8002/v1', OPENAI_API_KEY = 'unused' } = process.env;
const client = new OpenAI({ baseURL: OPENAI_BASE_URL, apiKey: OPENAI_API_KEY });
const [question = 'What is a batch?'] = process.argv.slice(2);
const stream = await client.chat.completions.create({
  model: 'my-model',
  messages: [{ role: 'user', content: question }],
  stream: true,
});
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? '');
process.stdout.write('\n');
