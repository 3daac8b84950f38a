import { crc32 } from 'node:zlib';
import { createLineIndex } from '../../core/openai/line-index';
import { scanRules } from '../../core/openai/scan-rules';
import { fileIndexKey, fileKey } from '../../core/names/object-names';
import { MIN_INDEXED_BYTES, readFileIndex } from '../../core/plan/file-index';
import { configSchema } from '../../platform/config-schema';
import { version } from '../../platform/version';
import { FileIndexing } from '../../api/uploads/file-indexing';
import type { ObjectStore } from '../../storage/object-store';
import { tenantHash } from '../../storage/objects/tenant-hash';
import {
  batchForm,
  openTestApi,
  post,
  type TestApi,
  type TestPart,
  upload,
  uploadPart,
} from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

const CONFIG = configSchema.parse({});
const ENDPOINT = '/v1/chat/completions';
const LINE_INDEX = createLineIndex()!;

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ deps: { lineIndex: LINE_INDEX } });
}, POSTGRES_START_MS);
afterAll(() => api.close());

/** Usual lines of at least `bytes`. */
function lines(bytes: number, url = ENDPOINT): string {
  const text = 'A line of a usual length. '.repeat(100);
  const body = { model: 'm', messages: [{ role: 'user', content: text }] };
  const rest = JSON.stringify({ method: 'POST', url, body }).slice(1);
  const all: string[] = [];
  for (let length = 0; length < bytes; length += all.at(-1)!.length) {
    all.push(`{"custom_id":"${all.length}",${rest}\n`);
  }
  return all.join('');
}

const LARGE = lines(MIN_INDEXED_BYTES);
const form = (content: string): TestPart[] => batchForm(content);

/** Uploads a file. Returns the key of its index. */
async function create(parts: TestPart[], of = api, headers: Record<string, string> = {}) {
  const { status, body } = await of.call(upload(parts, headers));
  expect(status).toBe(200);
  return fileIndexKey(fileKey(tenantHash('default'), (body as { id: string }).id));
}

async function indexOf(key: string): Promise<Buffer | null> {
  return (await api.store.head(key)) === null ? null : api.store.read(key);
}

describe('an upload of a large file for batches', () => {
  it('leaves an index of the file', async () => {
    const index = await indexOf(await create(form(LARGE)));
    const rules = scanRules(CONFIG, ENDPOINT);
    const terms = { release: version(), rules, bytes: LARGE.length };
    const read = readFileIndex(index!, terms, crc32)!;
    const ends: number[] = [];
    while (read.tellSome({ request: (r) => void ends.push(r.offset + r.length + 1) }, 1_000));
    expect(ends).toHaveLength(read.requests);
    expect(ends.at(-1)).toBe(LARGE.length);
    expect(ends.every((end) => LARGE[end - 1] === '\n')).toBe(true);
  });

  it('finds the endpoint behind other URLs', async () => {
    const first = lines(1, ENDPOINT).replace('{"cu', '{"note":{"url":"https://x.org/a"},"cu');
    const rest = LARGE.slice(LARGE.indexOf('\n') + 1);
    expect(await indexOf(await create(form(first + rest)))).not.toBeNull();
  });

  it.each<[string, () => TestPart[]]>([
    ['is small', () => form(lines(MIN_INDEXED_BYTES - 4_000))],
    ['has a bad line', () => form(`${LARGE}{}\n`)],
    ['has a line that must be parsed', () => form(LARGE.replace('"m"', '"\\u006d"'))],
    ['names another endpoint later', () => form(LARGE + lines(1, '/v1/completions'))],
    ['has a first line without a URL', () => form(`{"a":1}\n${LARGE}`)],
    ['names recordings', () => form(lines(MIN_INDEXED_BYTES, '/v1/audio/transcriptions'))],
    ['is for another purpose', () => [{ name: 'purpose', value: 'user_data' }, form(LARGE)[1]!]],
  ])('leaves none if it %s', async (_what, parts) => {
    expect(await indexOf(await create(parts()))).toBeNull();
  });

  it('leaves one index if the request is repeated', async () => {
    const before = (await api.keys()).filter((key) => key.startsWith('indexes/'));
    const headers = { 'idempotency-key': 'once' };
    const first = await create(form(LARGE), api, headers);
    expect(await create(form(LARGE), api, headers)).toBe(first);
    const after = (await api.keys()).filter((key) => key.startsWith('indexes/'));
    expect(after.filter((key) => !before.includes(key))).toEqual([first]);
  });

  it(
    'succeeds without an index if that cannot be stored',
    async () => {
      const store: ObjectStore = {
        ...api.store,
        putIfAbsent: (key, body) =>
          key.startsWith('indexes/')
            ? Promise.reject(new Error('the store is away'))
            : api.store.putIfAbsent(key, body),
      };
      const failing = await openTestApi({ deps: { lineIndex: LINE_INDEX, store } });
      try {
        const key = await create(form(LARGE), failing);
        expect(await indexOf(key)).toBeNull();
        expect(await api.store.head(key.replace('indexes/', 'files/'))).toEqual({
          size: LARGE.length,
        });
      } finally {
        await failing.close();
      }
    },
    POSTGRES_START_MS,
  );
});

describe('an upload in parts', () => {
  /** Uploads pieces of a file. Returns the answer to its completion, and the key of the index. */
  async function inParts(pieces: readonly string[], fields: object = {}, rest: object = {}) {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const about = { filename: 'in.jsonl', purpose: 'batch', mime_type: 'application/jsonl', bytes };
    const { id } = (await api.call(post('/v1/uploads', { ...about, ...fields }))).body;
    const ids: string[] = [];
    for (const value of pieces) {
      ids.push((await api.call(uploadPart(id, value))).body.id);
    }
    const complete = () => api.call(post(`/v1/uploads/${id}/complete`, { part_ids: ids, ...rest }));
    const { status, body } = await complete();
    const key = fileIndexKey(fileKey(tenantHash('default'), String(body.file?.id)));
    return { status, key, complete };
  }
  const indexes = async () => (await api.keys()).filter((key) => key.startsWith('indexes/'));

  it('leaves the index that the same file has as a whole, once', async () => {
    const whole = await indexOf(await create(form(LARGE)));
    const before = await indexes();
    const { status, key, complete } = await inParts([
      LARGE.slice(0, 1_000),
      LARGE.slice(1_000, 3_000_001),
      LARGE.slice(3_000_001),
    ]);
    expect(status).toBe(200);
    expect(await indexOf(key)).toEqual(whole);
    expect((await complete()).status).toBe(200);
    expect((await indexes()).filter((one) => !before.includes(one))).toEqual([key]);
  });

  it.each<[string, string, object, object, number]>([
    ['has a bad line', `${LARGE}{}\n`, {}, {}, 200],
    ['is small', lines(1), {}, {}, 200],
    ['is for another purpose', LARGE, { purpose: 'user_data' }, {}, 200],
    ['is refused', LARGE, {}, { md5: '0'.repeat(32) }, 400],
  ])('leaves none if it %s', async (_what, content, fields, rest, expected) => {
    const before = await indexes();
    const { status } = await inParts([content.slice(0, 99), content.slice(99)], fields, rest);
    expect(status).toBe(expected);
    expect(await indexes()).toEqual(before);
  });
});

describe('files that are indexed', () => {
  const indexing = (): FileIndexing =>
    new FileIndexing({ index: LINE_INDEX, settings: CONFIG, release: '1' });

  it('are at most four at a time, and the next one begins when one of them ends', () => {
    const all = indexing();
    const open = Array.from({ length: 5 }, () => all.begin(Infinity));
    expect(open.map((one) => one !== null)).toEqual([true, true, true, true, false]);
    open[1]?.close();
    open[1]?.close();
    expect([all.begin(Infinity), all.begin(Infinity)].map((one) => one !== null)).toEqual([
      true,
      false,
    ]);
  });

  it('make room for the next one as soon as there will be no index', () => {
    const all = indexing();
    const open = Array.from({ length: 4 }, () => all.begin(Infinity)!);
    expect(all.begin(Infinity)).toBeNull();
    open[2]!.update(Buffer.from('no request\n'));
    const next = all.begin(Infinity)!;
    expect(all.begin(Infinity)).toBeNull();
    open[2]!.update(Buffer.from(LARGE));
    open[2]!.close();
    expect([open[2]!.finish(), all.begin(Infinity)]).toEqual([null, null]);
    next.update(Buffer.from(LARGE));
    expect(next.finish()).not.toBeNull();
  });

  it('get none if the first line does not end within 1 MiB', () => {
    const isIndexed = (blanks: number): boolean => {
      const one = indexing().begin(Infinity)!;
      for (let at = 0; at < blanks; at += 1_000) one.update(Buffer.alloc(1_000, ' '));
      one.update(Buffer.from(LARGE));
      return one.finish() !== null;
    };
    expect([900_000, 1_100_000].map(isIndexed)).toEqual([true, false]);
  });

  it('get none if a line is longer than 1 MiB, also where longer ones are allowed', () => {
    const limits = { ...CONFIG.limits, max_line_bytes: 1 << 24 };
    const settings = { ...CONFIG, limits };
    const isIndexed = (bytes: number): boolean => {
      const one = new FileIndexing({ index: LINE_INDEX, settings, release: '1' }).begin(Infinity)!;
      one.update(Buffer.from(LARGE));
      one.update(Buffer.from(lines(1).replace('"0"', '"x"').replace('usual', 'x'.repeat(bytes))));
      return one.finish() !== null;
    };
    expect([1_000_000, 1_100_000].map(isIndexed)).toEqual([true, false]);
  });

  it('do not disturb each other, and follow each other in the same memory', () => {
    const all = indexing();
    const texts = [LARGE, `${LARGE}${LARGE.replaceAll('_id":"', '_id":"b')}`].map(Buffer.from);
    const make = (cut: number): Buffer[] => {
      const open = texts.map(() => all.begin(Infinity)!);
      for (let at = 0; at < texts[1]!.length; at += cut) {
        open.forEach((one, i) => one.update(texts[i]!.subarray(at, at + cut)));
      }
      const built = open.map((one) => Buffer.from(one.finish()!));
      for (const one of open) one.close();
      return built;
    };
    const [short, long] = make(60_000);
    expect(make(7_000)).toEqual([short, long]);
    expect(long!.length).toBeGreaterThan(short!.length);
  });
});
