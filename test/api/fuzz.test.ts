import { randomBytes } from 'node:crypto';
import net, { type AddressInfo } from 'node:net';
import fc from 'fast-check';
import {
  BOUNDARY,
  formBytes,
  LINE,
  openTestApi,
  type TestApi,
  type TestPart,
} from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

/**
 * Sends random and damaged requests. Every answer is documented and none is a 5xx, and a refused request
 * leaves nothing in the store.
 */

let api: TestApi;
let uploadId: string;
beforeAll(async () => {
  api = await openTestApi({ deps: { maxUploadBytes: 20_000, maxPartBytes: 10_000 } });
  const body = { filename: 'a', purpose: 'user_data', bytes: 1_000_000, mime_type: 'x' };
  uploadId = (await json('POST', '/v1/uploads', JSON.stringify(body))).body.id;
}, POSTGRES_START_MS);
afterAll(() => api.close());

const RUNS = { numRuns: 300, endOnFailure: true };

const json = (method: 'POST', url: string, payload: string | Buffer) =>
  api.call({ method, url, headers: { 'content-type': 'application/json' }, payload });
const form = (url: string, payload: Buffer, boundary = BOUNDARY) =>
  api.call({
    method: 'POST',
    url,
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    payload,
  });

/** Objects in the store that belong to no file and no part. */
async function leftOvers(): Promise<string[]> {
  const { rows } = await api.database.pool.query<{ key: string }>(
    `select object_key as key from files
     union all select 'uploads/' || upload_id || '/' || id from upload_parts`,
  );
  const known = new Set(rows.map(({ key }) => key));
  return (await api.keys()).filter((key) => !known.has(key));
}

const name = fc.oneof(
  fc.constantFrom('file', 'data', 'purpose', 'expires_after[anchor]', 'expires_after[seconds]'),
  fc.string({ maxLength: 12 }).map((text) => text.replace(/["\r\n]/g, '')),
);
const value = fc.oneof(
  fc.constantFrom('batch', 'user_data', 'created_at', '3600', '-1', '1e3', '', LINE),
  fc.string({ maxLength: 200, unit: 'binary' }),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc.constant(Buffer.alloc(25_000, 'x')),
);
const part: fc.Arbitrary<TestPart> = fc.oneof(
  fc.record({ name, value }),
  fc.record({
    ...{ name, value },
    filename: fc.string({ maxLength: 20 }).map((text) => text.replace(/["\r\n]/g, '')),
  }),
);
/** The entries of forms that are accepted: as a file, and as a part of an upload. */
const FILE_FORM: TestPart[] = [
  { name: 'purpose', value: 'user_data' },
  { name: 'file', value: LINE, filename: 'a.jsonl' },
];
const PART_FORM: TestPart[] = [{ name: 'data', value: LINE, filename: 'a' }];

/** Entries of a valid form, some of them removed, others added. */
const nearGood: fc.Arbitrary<TestPart[]> = fc
  .record({
    good: fc.subarray(FILE_FORM),
    data: fc.subarray(PART_FORM),
    other: fc.array(part, { maxLength: 1 }),
    isFile: fc.boolean(),
  })
  .map(({ good, data, other, isFile }) => [...(isFile ? good : data), ...other]);

/** A form whose bytes are cut, changed or interrupted. */
const damagedForm = fc
  .record({
    parts: fc.oneof(nearGood, fc.array(part, { maxLength: 6 })),
    damage: fc.array(
      fc.oneof(
        fc.record({ kind: fc.constant('cut' as const), at: fc.double({ min: 0, max: 1 }) }),
        fc.record({ kind: fc.constant('flip' as const), at: fc.double({ min: 0, max: 1 }) }),
        fc.record({ kind: fc.constant('insert' as const), at: fc.double({ min: 0, max: 1 }) }),
      ),
      { maxLength: 2 },
    ),
  })
  .map(({ parts, damage }) =>
    damage.reduce((bytes, { kind, at }) => {
      const place = Math.floor((at || 0) * bytes.length);
      if (kind === 'cut') return bytes.subarray(0, place);
      if (kind === 'insert') {
        const pieces = [bytes.subarray(0, place), Buffer.from(`\r\n--${BOUNDARY}`)];
        return Buffer.concat([...pieces, bytes.subarray(place)]);
      }
      const flipped = Buffer.from(bytes);
      if (place < flipped.length) flipped.writeUInt8(flipped.readUInt8(place) ^ 0x20, place);
      return flipped;
    }, formBytes(parts)),
  );

/** One that each of the two accepts. Of the others, so few are accepted that 300 may have none. */
const goodForms: [Buffer][] = [[formBytes(FILE_FORM)], [formBytes(PART_FORM)]];

it.each(['/v1/files', 'parts'])(
  'a damaged form for %s is accepted or refused, never a 5xx',
  async (where) => {
    const url = where === 'parts' ? `/v1/uploads/${uploadId}/parts` : where;
    const statuses = new Set<number>();
    await fc.assert(
      fc.asyncProperty(damagedForm, async (bytes) => {
        const { status } = await form(url, bytes);
        statuses.add(status);
        expect([200, 400, 413]).toContain(status);
      }),
      { ...RUNS, examples: goodForms },
    );
    expect([...statuses].sort()).toEqual([200, 400]);
    expect(await leftOvers()).toEqual([]);
  },
  120_000,
);

it('a form with a strange boundary is accepted or refused, never a 5xx', async () => {
  const boundary = fc.string({ minLength: 1, maxLength: 80 }).map((text) => text.trim() || 'x');
  await fc.assert(
    fc.asyncProperty(boundary, part, async (text, one) => {
      const quoted = `"${text.replace(/["\\]/g, '')}"`;
      const { status } = await form('/v1/files', formBytes([one], text), quoted);
      expect([200, 400, 413]).toContain(status);
    }),
    { ...RUNS, numRuns: 100 },
  );
  expect(await leftOvers()).toEqual([]);
}, 60_000);

/** Bodies that are almost valid: each member valid, wrong, odd, or missing. */
const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, '', '\0', '\ud800', -1, 0, 1e308, 2 ** 53, [], {}, true, '24h', '1s'),
  fc.constantFrom('/v1/responses', 'batch', 'file-none', '__proto__', 'x'.repeat(2_000)),
);
const near = (names: readonly string[]) =>
  fc.dictionary(fc.oneof(fc.constantFrom(...names, '__proto__', 'constructor'), fc.string()), odd);
const BODIES: [string, readonly string[]][] = [
  [
    '/v1/batches',
    ['input_file_id', 'endpoint', 'completion_window', 'metadata', 'output_expires_after'],
  ],
  ['/v1/uploads', ['filename', 'purpose', 'bytes', 'mime_type', 'expires_after']],
  ['complete', ['part_ids', 'md5']],
];

it.each(BODIES)(
  'a random JSON body for %s is accepted or refused, never a 5xx',
  async (where, names) => {
    const url = where === 'complete' ? `/v1/uploads/${uploadId}/complete` : where;
    await fc.assert(
      fc.asyncProperty(near(names), async (body) => {
        const { status } = await json('POST', url, JSON.stringify(body));
        expect([200, 400]).toContain(status);
      }),
      RUNS,
    );
  },
  60_000,
);

it('bytes that are not JSON are refused', async () => {
  const text = fc.oneof(
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
    fc.string().map((junk) => Buffer.from(`{"input_file_id":${junk}`)),
    fc.constant(Buffer.from('['.repeat(100_000))),
  );
  await fc.assert(
    fc.asyncProperty(text, async (bytes) => {
      for (const { 0: url } of BODIES.slice(0, 2)) {
        expect((await json('POST', url, bytes)).status).toBe(400);
      }
    }),
    { ...RUNS, numRuns: 100 },
  );
}, 60_000);

it('paths and queries of random characters are answered, never with a 5xx', async () => {
  const segment = fc.string({ maxLength: 40, unit: 'binary' }).map(encodeURIComponentSafely);
  await fc.assert(
    fc.asyncProperty(segment, segment, async (id, text) => {
      for (const url of [
        `/v1/files/${id}`,
        `/v1/files/${id}/content`,
        `/v1/batches/${id}`,
        `/v1/files?after=${id}&purpose=${text}`,
        `/v1/batches?after=${id}&limit=${text}`,
      ]) {
        const { status } = await api.call({ method: 'GET', url });
        expect([200, 400, 404]).toContain(status);
      }
    }),
    { ...RUNS, numRuns: 150 },
  );
}, 60_000);

function encodeURIComponentSafely(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}

it('nothing remains of the forms of clients that disconnect', async () => {
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = api.app.server.address() as AddressInfo;
  const whole = formBytes([
    { name: 'purpose', value: 'user_data' },
    { name: 'file', value: randomBytes(15_000), filename: 'a' },
  ]);
  const before = (await api.keys()).length;
  for (let i = 1; i <= 20; i++) {
    const socket = net.connect(port, '127.0.0.1').resume();
    socket.on('error', () => undefined);
    socket.write(
      `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=${BOUNDARY}\r\n` +
        `content-length: ${whole.length}\r\n\r\n`,
    );
    await new Promise((resolve) =>
      socket.write(whole.subarray(0, Math.floor((whole.length * i) / 21)), resolve),
    );
    const closed = new Promise((resolve) => socket.once('close', resolve));
    if (i % 2 === 0) socket.destroy();
    else socket.end();
    await closed;
  }
  await api.app.close();
  expect((await api.keys()).length).toBe(before);
  expect(await leftOvers()).toEqual([]);
}, 60_000);
