import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { ReceivedBody } from '../../../gateway/audio/received-body';
import { receiveForm } from '../../../gateway/audio/receive-form';
import { openSpool, type Spool } from '../../../gateway/audio/spool';
import { BOUNDARY, formBody, type Part, wav } from './forms';

const MIB = 1024 ** 2;
const dir = mkdtempSync(join(tmpdir(), 'spool-'));
afterAll(() => rmSync(dir, { recursive: true }));

const SETTINGS = { dir, max_bytes: 8 * MIB, sheddable_bytes: 4 * MIB };

interface Given {
  readonly spool: Spool;
  readonly declaredBytes?: number | null;
  readonly isSheddable?: boolean;
}

function bodyFor({ spool, declaredBytes = null, isSheddable = false }: Given) {
  const errors: unknown[] = [];
  const body = new ReceivedBody({
    ...{ spool, memory: null, isSheddable, declaredBytes },
    onSpoolError: (error) => errors.push(error),
  });
  return { body, errors };
}

function requestOf(chunks: Iterable<Buffer> | AsyncIterable<Buffer>) {
  return { raw: Readable.from(chunks, { objectMode: true }) as unknown as IncomingMessage };
}

function* cut(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? bytes.length;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(source: { read(): AsyncIterable<Buffer> }): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of source.read()) pieces.push(piece);
  return Buffer.concat(pieces);
}

const limits = { boundary: BOUNDARY, maxFileBytes: 2 * MIB };

it('keeps every byte of a form, and finds its recording, however it is cut', async () => {
  const spool = await openSpool(SETTINGS);
  const sizes = fc.array(fc.integer({ min: 1, max: 50_000 }), { minLength: 1, maxLength: 4 });
  const lengths = fc.oneof(
    fc.integer({ min: 0, max: 300 }),
    fc.integer({ min: 60_000, max: 200_000 }),
  );
  const property = fc.asyncProperty(sizes, lengths, fc.nat(3), async (pieces, length, place) => {
    const parts: Part[] = ['model', 'language', 'prompt'].map((name) => ({
      name,
      value: `a ${name}`,
    }));
    const audio = wav(length).fill('\r\n--', 44);
    const file = { name: 'file', filename: 'a.wav', value: audio };
    const bytes = formBody(parts.toSpliced(place, 0, file));
    const { body } = bodyFor({ spool });
    const smallest = Math.max(Math.ceil(bytes.length / 400), 1);
    const request = requestOf(
      cut(
        bytes,
        pieces.map((size) => size + smallest),
      ),
    );
    const form = await receiveForm(request, { ...limits, body });
    expect(form.fields.get('prompt')).toEqual(['a prompt']);
    const { offset, length: found } = form.file!;
    expect((await read(body.range(0, body.size))).equals(bytes)).toBe(true);
    for (let i = 0; i < 2; i++) {
      expect((await read(body.range(offset, found))).equals(audio)).toBe(true);
    }
    body.release();
    expect(spool.room.bytes).toBe(0);
    expect(readdirSync(dir)).toEqual([]);
  });
  await fc.assert(property, { numRuns: 60 });
});

it('keeps a small body in memory and a large one in the spool', async () => {
  const spool = await openSpool(SETTINGS);
  const { body: small } = bodyFor({ spool });
  const { body: large } = bodyFor({ spool });
  const file = (bytes: number) => [{ name: 'file', filename: 'a', value: wav(bytes) }];
  await receiveForm(requestOf([formBody(file(1_000))]), { ...limits, body: small });
  await receiveForm(requestOf([formBody(file(100_000))]), { ...limits, body: large });
  expect(small.memoryBytes).toBe(small.size);
  expect(large.memoryBytes).toBe(0);
  expect(spool.room.bytes).toBe(2 * 64 * 1024);
  small.release();
  large.release();
  large.release();
  expect(spool.room.bytes).toBe(0);
});

it.each<[string, (file: Buffer) => AsyncIterable<Buffer> | Iterable<Buffer>, string]>([
  ['cut', (file) => [file.subarray(0, -200_000)], 'invalid_request'],
  ['too large', (file) => [file, Buffer.alloc(3 * MIB)], 'payload_too_large'],
  ['no form', () => [Buffer.alloc(200_000)], 'invalid_request'],
])('refuses a body that is %s, and leaves nothing in the spool', async (_, chunks, code) => {
  const spool = await openSpool(SETTINGS);
  const { body } = bodyFor({ spool });
  const bytes = formBody([{ name: 'file', filename: 'a', value: wav(400_000) }]);
  const received = receiveForm(requestOf(chunks(bytes)), { ...limits, body });
  await expect(received).rejects.toMatchObject({ code });
  body.release();
  expect(spool.room.bytes).toBe(0);
});

it('counts the bytes of the file, and of everything else', async () => {
  const spool = await openSpool(SETTINGS);
  const send = async (...parts: Parameters<typeof formBody>[0]) => {
    const { body } = bodyFor({ spool });
    try {
      return await receiveForm(requestOf([formBody(parts)]), { ...limits, body });
    } finally {
      body.release();
    }
  };
  const file = (bytes: number) => ({ name: 'file', filename: 'a', value: Buffer.alloc(bytes) });
  expect((await send(file(2 * MIB))).file?.length).toBe(2 * MIB);
  await expect(send(file(2 * MIB + 1))).rejects.toMatchObject({
    code: 'payload_too_large',
    param: 'file',
  });
  const field = { name: 'prompt', value: 'x'.repeat(40_000) };
  await expect(send(file(9), field, field)).rejects.toMatchObject({ code: 'payload_too_large' });
  await expect(send(file(9), file(9))).rejects.toMatchObject({ param: 'file' });
});

it('refuses a declared length without room before it is read', async () => {
  const spool = await openSpool(SETTINGS);
  const { body: first } = bodyFor({ spool, declaredBytes: 3 * MIB, isSheddable: true });
  first.reserve();
  const { body: second } = bodyFor({ spool, declaredBytes: 2 * MIB, isSheddable: true });
  expect(() => second.reserve()).toThrow('no room');
  first.release();
  second.release();
  expect(spool.room.bytes).toBe(0);
});

it('lets sheddable bodies give way to others, the newest first, until they are dispatched', async () => {
  const spool = await openSpool(SETTINGS);
  const evicted: string[] = [];
  const queue = (name: string) => {
    const { body } = bodyFor({ spool, declaredBytes: 2 * MIB, isSheddable: true });
    body.reserve();
    body.evictable(() => {
      evicted.push(name);
      body.release();
    });
    return body;
  };
  const [old] = [queue('old'), queue('new')];
  const newcomers = [3, 2, 2].map((mib) => bodyFor({ spool, declaredBytes: mib * MIB }).body);
  newcomers[0]!.reserve();
  expect(evicted).toEqual([]);
  newcomers[1]!.reserve();
  expect(evicted).toEqual(['new']);
  old.evictable(null);
  expect(() => newcomers[2]!.reserve()).toThrow('no room');
  expect(evicted).toEqual(['new']);
});

it.each([10_000, 200_000])(
  'refuses a body of %i bytes that gives way as it arrives',
  async (bytes) => {
    const spool = await openSpool(SETTINGS);
    const { body } = bodyFor({ spool, isSheddable: true });
    const form = formBody([{ name: 'file', filename: 'a', value: wav(bytes) }]);
    async function* arriving(): AsyncGenerator<Buffer> {
      yield form;
      body.destroy();
    }
    const received = receiveForm(requestOf(arriving()), { ...limits, body });
    await expect(received).rejects.toMatchObject({ code: 'unavailable' });
    expect(spool.room.bytes).toBe(0);
  },
);

it('refuses a body when the disk is full, and keeps nothing of it', async () => {
  const { room } = await openSpool(SETTINGS);
  let closed = 0;
  const full: Spool = {
    room,
    create: async () => ({
      append: async () => {
        throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
      },
      read: async () => 0,
      close: async () => void closed++,
    }),
  };
  const { body, errors } = bodyFor({ spool: full });
  const bytes = formBody([{ name: 'file', filename: 'a', value: wav(100_000) }]);
  const received = receiveForm(requestOf([bytes]), { ...limits, body });
  await expect(received).rejects.toMatchObject({ code: 'unavailable' });
  body.release();
  expect(errors).toMatchObject([{ code: 'ENOSPC' }]);
  expect([closed, room.bytes]).toEqual([1, 0]);
});

it('reads nothing after its release, and lets a read that has begun end', async () => {
  const spool = await openSpool(SETTINGS);
  const { body } = bodyFor({ spool });
  const bytes = formBody([{ name: 'file', filename: 'a', value: wav(600_000) }]);
  await receiveForm(requestOf([bytes]), { ...limits, body });
  const reader = body.range(0, body.size).read()[Symbol.asyncIterator]();
  await reader.next();
  body.release();
  expect(spool.room.bytes).toBeGreaterThan(0);
  expect(await read(body.range(0, body.size))).toHaveLength(0);
  let rest = 256 * 1024;
  for (let next = await reader.next(); next.done !== true; next = await reader.next()) {
    rest += next.value.length;
  }
  expect(rest).toBe(bytes.length);
  expect(spool.room.bytes).toBe(0);
});

it('removes its own leftovers at the start, and nothing else', async () => {
  writeFileSync(join(dir, 'body-01234567-89ab-cdef-0123-456789abcdef'), 'left');
  writeFileSync(join(dir, 'note.txt'), 'keep');
  await openSpool(SETTINGS);
  expect(readdirSync(dir)).toEqual(['note.txt']);
  rmSync(join(dir, 'note.txt'));
});

it('names the setting of a directory that cannot be used', async () => {
  const path = join(dir, 'file');
  writeFileSync(path, '');
  await expect(openSpool({ ...SETTINGS, dir: path })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('gateway.audio.spool.dir') as string,
  });
  rmSync(path);
});
