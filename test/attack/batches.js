'use strict';

const { goodLine, SHAPES } = require('./attacks.js');
const { hostile, hostileHeader } = require('./hostile.js');

const ENDS_WITHIN_MS = 600_000;
const TERMINAL = ['completed', 'failed', 'expired', 'cancelled'];

/** Creates `count` batches of hostile names; returns `{ id, tenant, what }` of those that were accepted. */
async function createHostileBatches(client, random, { count, wanted }) {
  const made = [];
  const refused = {};
  const create = async (file, what) => {
    const answer = await client.json('POST', '/v1/batches', {
      tenant: file.tenant,
      body: {
        input_file_id: file.fileId,
        endpoint: '/v1/chat/completions',
        completion_window: random.pick(['24h', '24h', '60s', '3s']),
        metadata: metadata(random),
      },
    });
    if (answer.status !== 200) {
      const name = `${answer.status} ${answer.value?.error?.code ?? answer.value?.error?.param}`;
      refused[name] = (refused[name] ?? 0) + 1;
      return;
    }
    made.push({ id: answer.value.id, tenant: file.tenant, what });
    await afterwards(client, random, { id: answer.value.id, ...file });
  };
  for (const file of wanted) await create(file, 'bomb');
  for (let tries = 0; made.length < count && tries < 3 * count; tries++) {
    const tenant = hostileHeader(random, 256);
    const { content, what } = hostileFile(random);
    const filename = hostile(random, 255).toWellFormed();
    const { status, value } = await client.upload(content, { filename, tenant });
    if (status === 200) await create({ fileId: value.id, tenant }, what);
    else refused[`file ${status}`] = (refused[`file ${status}`] ?? 0) + 1;
  }
  return { made, refused };
}

/** Some are cancelled, once or twice, and some lose their input file. */
async function afterwards(client, random, { id, fileId, tenant }) {
  if (random.chance(0.2)) await client.send('DELETE', `/v1/files/${fileId}`, { tenant });
  for (let times = random.pick([0, 0, 0, 1, 2]); times > 0; times--) {
    await client.send('POST', `/v1/batches/${id}/cancel`, { tenant });
  }
}

function metadata(random) {
  const pairs = Array.from({ length: random.between(0, 16) }, (_, i) => [
    `${i}${hostile(random, 60).toWellFormed()}`.slice(0, 64),
    hostile(random, 512).toWellFormed().replaceAll('\0', '0'),
  ]);
  return Object.fromEntries(pairs.map(([key, value]) => [key.replaceAll('\0', '0'), value]));
}

function hostileFile(random) {
  return random.weighted([
    [4, () => ({ what: 'one name', content: lines([hostile(random, 256)]) })],
    [3, () => ({ what: 'many names', content: lines(names(random, random.between(2, 40), 256)) })],
    [1, () => ({ what: 'hundreds of names', content: lines(names(random, 400, 256)) })],
    [2, () => ({ what: '20 x 110', content: lines(distinct(20, 'a'.repeat(107))) })],
    [2, () => ({ what: 'emoji', content: lines(distinct(2, '💥'.repeat(126))) })],
    [1, () => ({ what: 'a bomb', content: bomb(random) })],
    [1, () => ({ what: 'nonsense', content: Buffer.from(`${hostile(random, 4_000)}\n`) })],
  ]);
}

function bomb(random) {
  const shape = SHAPES[random.pick(Object.keys(SHAPES))](random.between(10_000, 3_000_000));
  return Buffer.concat([Buffer.from(`${goodLine('a')}\n`), shape]);
}

function names(random, count, most) {
  return Array.from({ length: count }, (_, i) => `${i}${hostile(random, most)}`.slice(0, most));
}

function distinct(count, stem) {
  return Array.from({ length: count }, (_, i) => `${stem}${i}`);
}

function lines(models) {
  return Buffer.from(models.map((model, i) => `${goodLine(`c-${i}`, model)}\n`).join(''));
}

/** Waits for all to end; those that do not are returned. */
async function untilEnded(client, made) {
  const untilMs = performance.now() + ENDS_WITHIN_MS;
  const ends = {};
  let open = made;
  while (open.length > 0 && performance.now() < untilMs) {
    const still = [];
    for (const batch of open) {
      const { tenant } = batch;
      const { value } = await client.json('GET', `/v1/batches/${batch.id}`, { tenant });
      if (TERMINAL.includes(value?.status)) ends[value.status] = (ends[value.status] ?? 0) + 1;
      else still.push({ ...batch, status: value?.status });
    }
    open = still;
    if (open.length > 0) await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return { ends, open };
}

module.exports = { createHostileBatches, untilEnded };
