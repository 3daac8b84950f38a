'use strict';

const MIB = 1024 * 1024;

/**
 * One attack each: `run` does it as hard as a client can for a few seconds and returns what it saw that
 * should not have been, as sentences. Sizes come from the run's seed.
 */
const ATTACKS = [
  { name: 'headers full of blanks', run: blankHeaders },
  { name: 'part headers full of blanks', run: blankPartHeaders },
  { name: 'forms of very many parts', run: manyParts },
  { name: 'filler headers before the tenant', run: fillerHeaders },
  { name: 'the tenant named twice', run: twoTenants },
  { name: 'JSON bombs as bodies', run: bombBodies },
  { name: 'JSON bombs as files', run: bombFiles },
  { name: 'bodies of a byte now and then', run: slowBodies },
  { name: 'idle connections', run: idleConnections },
  { name: 'foreign pages', run: foreignPages },
  { name: 'files and uploads of nothing', run: nothings },
  { name: 'complete calls that fail', run: failingCompletes },
];

const SHAPES = {
  arrays: (bytes) => Buffer.alloc(bytes, '['),
  objects: (bytes) => repeated('{"a":', bytes),
  pairs: (bytes) => wrapped('[', repeated('[],', bytes), '[]]'),
  numbers: (bytes) => wrapped('[', repeated('1,', bytes), '1]'),
  strings: (bytes) => wrapped('[', repeated('"",', bytes), '""]'),
  keys: (bytes) => wrapped('{', manyKeys(bytes), '"z":1}'),
  quotes: (bytes) => wrapped('"', repeated('\\"', bytes), '"'),
};

function repeated(piece, bytes) {
  return Buffer.alloc(bytes - (bytes % piece.length), piece);
}

function wrapped(before, middle, after) {
  return Buffer.concat([Buffer.from(before), middle, Buffer.from(after)]);
}

function manyKeys(bytes) {
  const keys = [];
  for (let i = 0, size = 0; size < bytes; i++) {
    const key = `"${i.toString(36)}":1,`;
    keys.push(key);
    size += key.length;
  }
  return Buffer.from(keys.join(''));
}

async function blankHeaders({ client, random, forMs }) {
  const names = ['accept', 'authorization', 'user-agent', 'x-request-id', 'openai-organization'];
  await during(forMs, 8, async () => {
    const blanks = ' '.repeat(random.between(4_000, 14_000));
    const name = random.pick(names);
    await quietly(client.send('GET', '/v1/files?limit=1', { headers: { [name]: `a${blanks}b` } }));
  });
  return [];
}

async function blankPartHeaders({ client, random, forMs }) {
  await during(forMs, 4, async () => {
    const parts = Array.from({ length: random.between(4, 20) }, (_, i) => {
      const blanks = ' '.repeat(random.between(4_000, 16_000));
      return `--b\r\ncontent-disposition: form-data; name="f${i}"${blanks}x\r\nx: ${blanks}y\r\n\r\nv\r\n`;
    });
    await quietly(
      client.send('POST', '/v1/files', {
        headers: { 'content-type': 'multipart/form-data; boundary=b' },
        body: Buffer.from(`${parts.join('')}--b--\r\n`),
      }),
    );
  });
  return [];
}

async function manyParts({ client, random, forMs }) {
  await during(forMs, 2, async () => {
    const part = '--b\r\ncontent-disposition: form-data; name="x"\r\n\r\n\r\n';
    await quietly(
      client.send('POST', '/v1/files', {
        headers: { 'content-type': 'multipart/form-data; boundary=b' },
        body: Buffer.from(`${part.repeat(random.between(10_000, 60_000))}--b--\r\n`),
      }),
    );
  });
  return [];
}

async function fillerHeaders({ client, random, tenantHeader }) {
  const faults = [];
  for (const count of [200, 1_025, 1_999, 2_001, random.between(2_100, 6_000)]) {
    const filler = Array.from({ length: count }, (_, i) => `f${i}: \r\n`).join('');
    for (const after of [true, false]) {
      const mine = `${tenantHeader}: filler\r\n`;
      const head = after ? filler + mine : mine + filler;
      const text = await exchange(
        client,
        `GET /v1/files?limit=1 HTTP/1.1\r\nhost: ${client.host}\r\n${head}connection: close\r\n\r\n`,
      );
      const organization = /^openai-organization: (.*)$/im.exec(text)?.[1];
      if (text === '') faults.push(`${count} fillers: the connection was closed without an answer`);
      if (/ 200 /.test(text.slice(0, 20)) && organization !== 'filler') {
        faults.push(`${count} fillers: taken for tenant '${organization}'`);
      }
    }
  }
  return faults;
}

async function twoTenants({ client, tenantHeader }) {
  const twice = `${tenantHeader}: one\r\n${tenantHeader.toUpperCase()}: two\r\n`;
  const text = await exchange(
    client,
    `GET /v1/files?limit=1 HTTP/1.1\r\nhost: ${client.host}\r\n${twice}connection: close\r\n\r\n`,
  );
  return / 200 /.test(text.slice(0, 20)) ? ['two tenants in one request were answered'] : [];
}

async function bombBodies({ client, random, forMs }) {
  await during(forMs, 2, async () => {
    const shape = random.pick(Object.keys(SHAPES));
    const body = SHAPES[shape](random.between(100_000, 2 * MIB));
    const headers = { 'content-type': 'application/json' };
    await quietly(client.send('POST', '/v1/batches', { headers, body }));
  });
  return [];
}

async function bombFiles({ client, random, batches }) {
  for (const shape of Object.keys(SHAPES)) {
    for (const first of [true, false]) {
      const bomb = SHAPES[shape](random.between(6 * MIB, 15 * MIB));
      const good = Buffer.from(`${goodLine('ok')}\n`);
      const content = Buffer.concat(first ? [bomb, good] : [good, bomb]);
      const { status, value } = await client.upload(content, { filename: `${shape}.jsonl` });
      if (status === 200) batches.wanted.push({ fileId: value.id, tenant: 'attacker' });
    }
  }
  return [];
}

async function slowBodies({ client, random, forMs }) {
  const sockets = Array.from({ length: 100 }, () => client.connect());
  for (const socket of sockets) {
    const size = random.between(1_000, 1_000_000);
    socket.write(
      `POST /v1/files HTTP/1.1\r\nhost: ${client.host}\r\n${client.tenantLine}` +
        `content-type: multipart/form-data; boundary=b\r\ncontent-length: ${size}\r\n\r\n`,
    );
  }
  await during(forMs, 1, async () => {
    for (const socket of sockets) if (!socket.destroyed) socket.write('-');
    await pause(250);
  });
  for (const socket of sockets) socket.destroy();
  return [];
}

async function idleConnections({ client, forMs }) {
  const sockets = Array.from({ length: 1_500 }, () => client.connect());
  await pause(forMs);
  for (const socket of sockets) socket.destroy();
  return [];
}

async function foreignPages({ client }) {
  const faults = [];
  const looks = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
  ];
  for (const headers of looks) {
    const body = Buffer.from('{}');
    const sent = { ...headers, 'content-type': 'text/plain' };
    const { status } = await client.send('POST', '/v1/batches', { headers: sent, body });
    if (status < 400) faults.push(`${JSON.stringify(headers)} was answered with ${status}`);
  }
  return faults;
}

async function nothings({ client, random, forMs }) {
  const seen = { stored: 0 };
  await during(forMs, 8, async () => {
    const mime = `text/${'x'.repeat(random.between(1_000, 15_000))}`;
    const { status } = await client.upload(Buffer.alloc(0), { mime });
    if (status === 200) seen.stored++;
    const body = { bytes: 1, filename: 'f', mime_type: 'm'.repeat(500_000), purpose: 'batch' };
    const upload = await client.json('POST', '/v1/uploads', { body });
    if (upload.status === 200) seen.stored++;
  });
  return seen.stored === 0 ? [] : [`${seen.stored} things with a huge MIME type were stored`];
}

async function failingCompletes({ client, forMs }) {
  const body = { bytes: 10, filename: 'f', mime_type: 'application/jsonl', purpose: 'batch' };
  const { value, status } = await client.json('POST', '/v1/uploads', { body });
  if (status !== 200) return [`an upload could not be made: ${status}`];
  await during(forMs, 8, async () => {
    const part_ids = Array.from({ length: 200 }, (_, i) => `part_${i}`);
    await quietly(client.json('POST', `/v1/uploads/${value.id}/complete`, { body: { part_ids } }));
  });
  return [];
}

/** Everything that comes back on a connection of its own, until it is closed. */
function exchange(client, request) {
  return new Promise((resolve) => {
    const socket = client.connect();
    socket.setTimeout(20_000, () => socket.destroy());
    socket.on('close', () => resolve(socket.received));
    socket.write(Buffer.from(request, 'latin1'));
  });
}

function goodLine(customId, model = 'm') {
  const body = { model, messages: [{ role: 'user', content: 'hello' }] };
  return JSON.stringify({
    custom_id: customId,
    method: 'POST',
    url: '/v1/chat/completions',
    body,
  });
}

/** `work` again and again, `atOnce` of it, for so long. */
async function during(forMs, atOnce, work) {
  const untilMs = performance.now() + forMs;
  const loop = async () => {
    while (performance.now() < untilMs) await work();
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
}

/** A refusal may close the connection under a request: that is an answer too. */
function quietly(work) {
  return work.catch(() => undefined);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

module.exports = { ATTACKS, goodLine, SHAPES };
