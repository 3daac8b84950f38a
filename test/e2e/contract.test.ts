import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type OpenAI from 'openai';
import { APIError, AuthenticationError, BadRequestError, NotFoundError, toFile } from 'openai';
import {
  CHAT,
  type ContractStack,
  createBy,
  line,
  many,
  startContractStack,
  rejection,
  text,
  uploadBy,
} from './contract-stack';
import { findPython, runPythonContract } from './python-client';
import { STACK_START_MS, untilTerminal } from '../support/stack';

/**
 * The API (docs/design/api-contract.md) as the official clients use it, against one whole stack: files,
 * uploads and answers with the Node client, and all calls with the Python client.
 */

let stack: ContractStack;
let client: OpenAI;
const folder = mkdtempSync(join(tmpdir(), 'nightshift-contract-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(async () => {
  stack = await startContractStack();
  client = stack.clientOf('contract');
}, STACK_START_MS);
afterAll(() => stack?.close(), 60_000);
beforeEach(() => void (stack.exchanges.length = 0));

const uploaded = (content: string, name?: string, by = client) => uploadBy(by, content, name);
const created = (content: string, window?: string, by = client) => createBy(by, content, window);

/** What every call of the client resolves to when asked for more than its data. */
interface WithResponse {
  readonly data: unknown;
  readonly response: Response;
  readonly request_id: string | null | undefined;
}

describe('files, with the official client', () => {
  it('are created from a stream', async () => {
    const file = join(folder, 'stream.jsonl');
    const content = text([{}, {}]);
    writeFileSync(file, content);
    const made = await client.files.create({ file: createReadStream(file), purpose: 'batch' });
    expect(made).toMatchObject({
      id: expect.stringMatching(/^file-/),
      bytes: content.length,
      status: 'processed',
      filename: 'stream.jsonl',
    });
    expect((made.expires_at ?? 0) - made.created_at).toBe(2_592_000);
  });

  it('are created from buffers and web files, with non-ASCII names', async () => {
    const content = text([{}]);
    const kinds = [
      (name: string) => toFile(Buffer.from(content), name),
      (name: string) => toFile(new TextEncoder().encode(content), name),
      (name: string) => toFile(new Response(content), name),
      async (name: string) => new File([content], name),
    ];
    for (const name of ['größe "x".jsonl', '日本.jsonl']) {
      for (const kind of kinds) {
        const made = await client.files.create({ file: await kind(name), purpose: 'batch' });
        expect(made).toMatchObject({
          id: expect.stringMatching(/^file-/),
          filename: name,
          bytes: content.length,
          status: 'processed',
          expires_at: made.created_at + 2_592_000,
        });
      }
    }
  });

  it('expire when the request asks for it', async () => {
    const made = await client.files.create({
      file: new File([text([{}])], 'a.jsonl'),
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 3_600 },
    });
    expect((made.expires_at ?? 0) - made.created_at).toBe(3_600);
  });

  it('are retrieved as processed right after the upload', async () => {
    const made = await uploaded(text([{}]));
    expect(await client.files.retrieve(made.id)).toEqual(made);
    stack.exchanges.length = 0;
    expect(await client.files.waitForProcessing(made.id)).toEqual(made);
    expect(stack.exchanges).toHaveLength(1);
  });

  it('are listed page by page in both orders, each file once', async () => {
    const pager = stack.clientOf('pager');
    const ids = [];
    for (let i = 0; i < 5; i++) ids.push((await uploaded(text([{}]), `${i}.jsonl`, pager)).id);
    const seen = { desc: [] as string[], asc: [] as string[] };
    for (const order of ['desc', 'asc'] as const) {
      for await (const { id } of pager.files.list({ purpose: 'batch', limit: 2, order })) {
        seen[order].push(id);
      }
    }
    expect(seen.asc).toEqual(ids);
    expect(seen.desc).toEqual([...ids].reverse());
  });

  it('are downloaded byte for byte', async () => {
    const content = text([{}, { delay_ms: 1 }]);
    const answer = await client.files.content((await uploaded(content)).id);
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(answer.headers.get('content-length')).toBe(String(content.length));
    expect(await answer.text()).toBe(content);
  });

  it('are downloaded byte for byte as a stream', async () => {
    const content = many(5_000, { tag: '\u2028é' });
    const { body } = await client.files.content((await uploaded(content)).id);
    const path = join(folder, 'content.jsonl');
    await pipeline(Readable.fromWeb(body as ReadableStream), createWriteStream(path));
    expect(readFileSync(path, 'utf8')).toBe(content);
  });

  it('are not found after they were deleted', async () => {
    const { id } = await uploaded(text([{}]));
    expect(await client.files.delete(id)).toMatchObject({ id, deleted: true });
    for (const call of [
      () => client.files.retrieve(id),
      () => client.files.content(id),
      () => client.files.delete(id),
    ]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(NotFoundError);
      expect(error).toMatchObject({ param: 'id' });
    }
  });
});

describe('uploads, with the official client', () => {
  it('join parts in the order of the given ids, whatever order they arrived in', async () => {
    const content = text([{}, {}, {}]);
    const upload = await client.uploads.create({
      filename: 'parts.jsonl',
      purpose: 'batch',
      bytes: content.length,
      mime_type: 'application/jsonl',
    });
    const pieces = [content.slice(100), content.slice(0, 50), content.slice(50, 100)];
    const [last, first, second] = await Promise.all(
      pieces.map(async (piece) =>
        client.uploads.parts.create(upload.id, { data: await toFile(Buffer.from(piece), 'p') }),
      ),
    );
    const done = await client.uploads.complete(upload.id, {
      part_ids: [first, second, last].map((part) => part?.id ?? ''),
      md5: createHash('md5').update(content).digest('hex'),
    });
    expect(done).toMatchObject({ status: 'completed', file: { bytes: content.length } });
    expect(await (await client.files.content(done.file?.id ?? '')).text()).toBe(content);
  });

  it('accept no parts after they were cancelled', async () => {
    const upload = await client.uploads.create({
      ...{ filename: 'a.jsonl', purpose: 'batch', bytes: 10, mime_type: 'text/jsonl' },
    });
    expect((await client.uploads.cancel(upload.id)).status).toBe('cancelled');
    const data = await toFile(Buffer.from('x'), 'p');
    const error = await rejection(client.uploads.parts.create(upload.id, { data }));
    expect(error).toBeInstanceOf(BadRequestError);
  });
});
describe('answers to the official client', () => {
  it('with an error raise the error class of the SDK, with a request id', async () => {
    const { id } = await uploaded(text([{}]));
    const stranger = stack.clientOf('stranger');
    const expectations: [() => Promise<unknown>, new (...args: never[]) => Error, object][] = [
      [
        () => stack.clientOf('', 'sk-bad').files.list(),
        AuthenticationError,
        { code: 'invalid_api_key' },
      ],
      [
        () => client.files.list({}, { headers: { Authorization: null } }),
        AuthenticationError,
        { code: null },
      ],
      [() => client.batches.retrieve('batch_none'), NotFoundError, { param: null }],
      [() => client.batches.retrieve('none'), BadRequestError, { param: 'batch_id' }],
      [() => stranger.files.retrieve(id), NotFoundError, { param: 'id' }],
      [() => client.get('/nothing'), NotFoundError, { type: 'invalid_request_error' }],
      [() => client.put('/files'), APIError, { status: 405 }],
    ];
    for (const [call, type, members] of expectations) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(type);
      expect(error).toMatchObject({ ...members, requestID: expect.stringMatching(/./) });
    }
  });

  it('with status 429 make the SDK try again', async () => {
    const busy = stack.clientOf('busy');
    const content = many(4, { after_429: true });
    for (let i = 0; i < 5; i++) await created(content, '24h', busy);
    const file = await uploaded(text([{}]), 'in.jsonl', busy);
    stack.exchanges.length = 0;
    const fields = { input_file_id: file.id, endpoint: CHAT, completion_window: '24h' } as const;
    const batch = await busy.batches.create(fields, { maxRetries: 10 });
    const statuses = stack.exchanges.map(({ status }) => status);
    // On a busy machine all five may still run after the first pause.
    expect([statuses[0], statuses.at(-1)]).toEqual([429, 200]);
    expect(new Set(statuses.slice(0, -1))).toEqual(new Set([429]));
    expect(batch.status).toBe('validating');
  }, 60_000);

  it('have the documented headers in every call', async () => {
    const file = await uploaded(text([{}]));
    const batch = await untilTerminal(client, (await created(text([{}]))).id);
    const going = await created(text([{ delay_ms: 25_000 }]));
    const fields = { filename: 'a', purpose: 'batch', bytes: 2, mime_type: 'text/jsonl' } as const;
    const upload = await client.uploads.create(fields);
    const data = () => toFile(Buffer.from('{}'), 'p');
    const part = await client.uploads.parts.create(upload.id, { data: await data() });
    const minimal = { endpoint: CHAT, completion_window: '24h' } as const;
    const calls: Record<string, () => { withResponse(): Promise<WithResponse> }> = {
      'files.create': () =>
        client.files.create({ file: new File([line({})], 'f'), purpose: 'batch' }),
      'files.list': () => client.files.list({ limit: 1 }),
      'files.retrieve': () => client.files.retrieve(file.id),
      'files.content': () => client.files.content(file.id),
      'files.delete': () => client.files.delete(file.id),
      'uploads.create': () => client.uploads.create(fields),
      'uploads.complete': () => client.uploads.complete(upload.id, { part_ids: [part.id] }),
      'batches.create': () => client.batches.create({ ...minimal, input_file_id: 'file-none' }),
      'batches.list': () => client.batches.list({ limit: 1 }),
      'batches.retrieve': () => client.batches.retrieve(batch.id),
      'batches.cancel': () => client.batches.cancel(going.id),
    };
    for (const [name, call] of Object.entries(calls)) {
      const { data, response, request_id: id } = await call().withResponse();
      expect([name, response.status, id]).toEqual([
        name,
        200,
        response.headers.get('x-request-id'),
      ]);
      expect([name, id]).toEqual([name, expect.stringMatching(/./)]);
      expect(response.headers.get('openai-version')).toBe('2020-10-01');
      expect(response.headers.get('openai-processing-ms')).toMatch(/^\d+$/);
      expect(response.headers.get('openai-organization')).toBe('contract');
      if (name !== 'files.content' && !name.endsWith('list')) {
        expect([name, (data as { _request_id?: string })._request_id]).toEqual([name, id]);
      }
    }
    await untilTerminal(client, going.id);
  });
});
const python = findPython();
(python === null ? describe.skip : describe)('the official Python client', () => {
  it('makes the same calls with the same results', async () => {
    const apiKey = stack.keyOf('python');
    const verdicts = await runPythonContract(python ?? '', {
      baseUrl: stack.baseUrl,
      apiKey,
    });
    expect(verdicts.filter(({ ok }) => !ok)).toEqual([]);
    expect(verdicts.length).toBeGreaterThanOrEqual(20);
  }, 180_000);
});
