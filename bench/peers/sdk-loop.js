'use strict';

/**
 * What most people write first: the official SDK in a `p-limit` loop, the results in a file at the
 * end. A crash costs all of it. Prints `{"seconds": …}` of the second file; the first one warms up.
 *
 * node sdk-loop.js <warm-up> <input> <output> <origin> <in flight>
 */
const fs = require('node:fs');
const { createInterface } = require('node:readline');
const { OpenAI } = require('openai');

async function main([warmUp, input, output, origin, inFlight]) {
  const { default: pLimit } = await import('p-limit');
  const limit = pLimit(Number(inFlight));
  const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: 'unused' });
  await batch({ client, limit }, { input: warmUp, output });
  const startedMs = performance.now();
  await batch({ client, limit }, { input, output });
  process.stdout.write(`${JSON.stringify({ seconds: (performance.now() - startedMs) / 1000 })}\n`);
}

async function batch({ client, limit }, { input, output }) {
  const answers = [];
  for await (const text of createInterface({ input: fs.createReadStream(input) })) {
    answers.push(limit(() => answer(client, JSON.parse(text))));
  }
  const results = await Promise.all(answers);
  fs.writeFileSync(output, results.map((result) => `${JSON.stringify(result)}\n`).join(''));
}

async function answer(client, { custom_id, body }) {
  const completion = await client.chat.completions.create(body);
  return { custom_id, response: { status_code: 200, body: completion }, error: null };
}

void main(process.argv.slice(2));
