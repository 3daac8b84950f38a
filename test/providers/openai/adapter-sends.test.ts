import { writeFileSync } from 'node:fs';
import type { OpenAiKind } from '../../../providers/provider-settings';
import { openProvider } from '../../../providers/registry';
import {
  JOB,
  KEY,
  batch,
  closeAll,
  create,
  error,
  marker,
  onClose,
  open,
  reply,
  send,
  type Handler,
} from './host-fixtures';
import { UPLOAD } from '../calls';

afterEach(closeAll);

describe('the upload of an input', () => {
  it('is a form of known length with the file, its purpose and its lifetime', async () => {
    const { provider, requests } = await open((_, response) =>
      reply(response, 200, { id: 'file-9' }),
    );
    const input = {
      bytes: 6,
      async *open() {
        yield Buffer.from('{1}');
        yield Buffer.from('\n2\n');
      },
    };
    expect(await provider.upload(JOB, input, UPLOAD)).toEqual({
      outcome: 'ok',
      value: 'file-9',
    });
    const [request] = requests;
    expect(request?.call).toBe('POST /v1/files');
    expect(request?.headers['content-length']).toBe(String(request?.body.length));
    const form = await new Response(request?.body ?? '', {
      headers: { 'content-type': request?.headers['content-type'] ?? '' },
    }).formData();
    expect(form.get('purpose')).toBe('batch');
    expect(form.get('expires_after[anchor]')).toBe('created_at');
    expect(form.get('expires_after[seconds]')).toBe('1209600');
    const file = form.get('file') as File;
    expect([file.name, await file.text()]).toEqual([`${JOB.jobId}.jsonl`, '{1}\n2\n']);
  });
});

describe('a create', () => {
  it('is one POST with the input, the window and our marker', async () => {
    const { provider, requests } = await open((_, response) =>
      reply(response, 200, batch('batch_1')),
    );
    expect(await create(provider)).toEqual({
      outcome: 'accepted',
      value: { externalId: 'batch_1', createdAtMs: 2_000_000 },
    });
    const [request] = requests;
    expect(request?.call).toBe('POST /v1/batches');
    expect(request?.headers['authorization']).toBe(`Bearer ${KEY}`);
    expect(request?.headers['idempotency-key']).toBeUndefined();
    expect(JSON.parse(request?.body ?? '')).toEqual({
      input_file_id: 'file-1',
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: marker,
    });
  });

  it.each<[string, Handler, object]>([
    ['refused', (_, r) => reply(r, 400, error('bad')), { status: 400, code: 'bad' }],
    [
      'capacity',
      (_, r) => reply(r, 429, error('x'), { 'retry-after': '700' }),
      { retryAfterMs: 700_000 },
    ],
    ['capacity', (_, r) => reply(r, 400, error('insufficient_quota')), { status: 400 }],
    ['auth', (_, r) => reply(r, 401, error('invalid_api_key')), { status: 401 }],
    ['auth', (_, r) => reply(r, 307, '', { location: '/v1/other' }), { status: 307 }],
    ['auth', (_, r) => void r.writeHead(404).end('<html>'), { status: 404 }],
    ['refused', (_, r) => reply(r, 404, error('no_file')), { status: 404 }],
    ['ambiguous', (_, r) => reply(r, 503, error('busy')), { status: 503 }],
    ['ambiguous', (_, r) => reply(r, 409, error('conflict')), { status: 409 }],
    ['ambiguous', (_, r) => reply(r, 200, { object: 'batch' }), { status: 200 }],
    ['ambiguous', (_, r) => void r.writeHead(200).end('<html>'), { status: 200 }],
    ['ambiguous', (_, r) => void r.destroy(), { status: null }],
    [
      'ambiguous',
      (_, r) => void r.writeHead(200, { 'content-length': 9 }).end('{'),
      { status: null },
    ],
  ])('is %s, after a single request: %#', async (outcome, handler, failure) => {
    const { provider, calls } = await open(handler);
    expect(await create(provider)).toMatchObject({ outcome, failure });
    expect(calls()).toEqual(['POST /v1/batches']);
  });

  it('is ambiguous after its time limit', async () => {
    const { provider, calls } = await open(() => undefined);
    const call = { ...send, timeoutMs: 200 };
    const result = await provider.create({ ...JOB, inline: null }, call);
    expect(result).toMatchObject({ outcome: 'ambiguous', failure: { status: null } });
    expect(calls()).toHaveLength(1);
  });

  it('is not sent if it may not leave, or nothing listens', async () => {
    const { provider, calls, server } = await open(() => undefined);
    const call = { ...send, mayLeave: () => false };
    const result = await provider.create({ ...JOB, inline: null }, call);
    expect(result.outcome).toBe('not_sent');
    await server.close();
    expect((await create(provider)).outcome).toBe('not_sent');
    expect(calls()).toEqual([]);
  });

  it('uses the key that the file has now, and masks it in the words of the provider', async () => {
    const { provider, keyFile } = await open(({ headers }, response) => {
      const message = `Incorrect API key: ${headers.authorization}`;
      reply(response, 401, error('invalid_api_key', message));
    });
    await create(provider);
    writeFileSync(keyFile, 'sk-rotated');
    expect(await create(provider)).toMatchObject({
      outcome: 'auth',
      failure: { message: 'Incorrect API key: Bearer ***' },
    });
  });
});

describe('another installation of Nightshift', () => {
  it('gets the job id as key of both POSTs, the time left as window, and one more hop', async () => {
    const { provider, requests } = await open(
      (_, response) => reply(response, 200, batch('batch_1')),
      'nightshift',
    );
    const input = { bytes: 0, async *open() {} };
    await provider.upload(JOB, input, UPLOAD);
    const window = provider.completionWindow(3_600_999);
    await provider.create({ ...JOB, hops: 1, window, inline: null }, send);
    expect(requests.map(({ headers }) => headers['idempotency-key'])).toEqual([
      JOB.jobId,
      JOB.jobId,
    ]);
    expect(JSON.parse(requests[1]?.body ?? '')).toMatchObject({
      completion_window: '3600s',
      metadata: { ...marker, nightshift_hops: '2' },
    });
  });

  it('gets a window within its limits', async () => {
    const { provider } = await open(() => undefined, 'nightshift');
    expect([-5, 100, 1e12].map((ms) => provider.completionWindow(ms))).toEqual([
      '1s',
      '1s',
      '2592000s',
    ]);
  });
});

describe('the account of a provider', () => {
  it('depends on type and address, and not on a slash at the end', async () => {
    const settings = { apiKey: null, tls: {}, requestTimeoutMs: 1, transferTimeoutMs: 1 };
    const accountAt = (type: OpenAiKind['type'], url: string) => {
      const provider = openProvider({ ...settings, type, url, maxResultLineBytes: 1 });
      onClose(() => provider.close());
      return provider.account;
    };
    const account = accountAt('openai', 'https://a/v1');
    expect(account).toMatch(/^[0-9a-f]{16}$/);
    expect(accountAt('openai', 'https://a/v1/')).toBe(account);
    expect(accountAt('openai', 'https://b/v1')).not.toBe(account);
    expect(accountAt('nightshift', 'https://a/v1')).not.toBe(account);
  });
});
