import type { LineResult } from '../../../providers/provider';
import type { OpenAiKind } from '../../../providers/provider-settings';
import * as host from '../openai/host-fixtures';
import type { Handler } from '../openai/host-fixtures';
import { RESULTS } from '../calls';

const { JOB, KEY, batch, create, error, marker, reply, signal } = host;
const open = (handler: Handler, type: OpenAiKind['type'] = 'azure_openai') =>
  host.open(handler, type);

afterEach(host.closeAll);

describe('a create at Azure OpenAI', () => {
  it('carries the key as `api-key` only, and what OpenAI gets', async () => {
    const { provider, requests } = await open((_, response) =>
      reply(response, 200, batch('batch_1', { status: 'Validating', metadata: null })),
    );
    expect(await create(provider)).toMatchObject({ outcome: 'accepted' });
    const [request] = requests;
    expect(request?.headers).toMatchObject({ 'api-key': KEY });
    expect(request?.headers).not.toHaveProperty('authorization');
    expect(JSON.parse(request?.body ?? '')).toEqual({
      input_file_id: 'file-1',
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: marker,
    });
    expect(provider.completionWindow(1_000)).toBe('24h');
  });

  it('waits for room if the tokens of the deployment are used up', async () => {
    const { provider } = await open((_, response) =>
      reply(response, 400, error('token_limit_exceeded')),
    );
    expect((await create(provider)).outcome).toBe('capacity');
  });

  it('masks the key in the words of the provider', async () => {
    const { provider } = await open(({ headers }, response) =>
      reply(response, 401, error('401', `wrong key ${String(headers['api-key'])}`)),
    );
    expect(await create(provider)).toMatchObject({
      outcome: 'auth',
      failure: { message: 'wrong key ***' },
    });
  });
});

describe('an uploaded input', () => {
  const ok = (value: string) => ({ outcome: 'ok', value });
  it.each<[string, Handler, object]>([
    ['pending', (_, r) => reply(r, 200, { id: 'file-1', status: 'pending' }), ok('processing')],
    ['running', (_, r) => reply(r, 200, { id: 'file-1', status: 'Running' }), ok('processing')],
    ['of an unknown state', (_, r) => reply(r, 200, { id: 'f', status: 'x' }), ok('processing')],
    ['processed', (_, r) => reply(r, 200, { id: 'file-1', status: 'Processed' }), ok('ready')],
    ['in error', (_, r) => reply(r, 200, { id: 'file-1', status: 'error' }), ok('ready')],
    ['without a state', (_, r) => reply(r, 200, { id: 'file-1' }), ok('ready')],
    ['gone', (_, r) => reply(r, 404, error('not_found')), ok('ready')],
    ['refused', (_, r) => reply(r, 400, error('bad')), ok('ready')],
    ['unreadable', (_, r) => reply(r, 200, []), { outcome: 'transient' }],
    ['at a busy host', (_, r) => reply(r, 500, error('busy')), { outcome: 'transient' }],
    ['behind a wrong key', (_, r) => reply(r, 401, error('key')), { outcome: 'auth' }],
  ])('that is %s is asked for once', async (_, handler, expected) => {
    const { provider, calls } = await open(handler);
    expect(await provider.inputState('file-1', { signal })).toMatchObject(expected);
    expect(calls()).toEqual(['GET /v1/files/file-1']);
  });

  it.each<OpenAiKind['type']>(['openai', 'nightshift'])(
    'of type %s is ready at once',
    async (type) => {
      const { provider, calls } = await open(() => undefined, type);
      expect(await provider.inputState('file-1', { signal })).toEqual(ok('ready'));
      expect(calls()).toEqual([]);
    },
  );
});

describe('a job at Azure OpenAI', () => {
  const sentAt = new Date(JOB.listFromMs + 1_000).toISOString();
  const foreign = { created_at: sentAt, input_file_id: 'file-2', metadata: null };

  it('is recognised by its input file in a list without metadata', async () => {
    const ours = { status: 'Running', input_file_id: 'file-1', created_at: sentAt, metadata: null };
    const { provider } = await open((_, response) =>
      reply(response, 200, { data: [batch('b2', foreign), batch('b1', ours)], has_more: false }),
    );
    expect(await provider.find(JOB, { signal })).toEqual({
      outcome: 'ok',
      value: { kind: 'job', job: { externalId: 'b1', createdAtMs: JOB.listFromMs + 1_000 } },
    });
  });

  it('is not looked for beyond a batch whose ISO time is too old', async () => {
    const old = { ...foreign, created_at: new Date(JOB.listFromMs - 1).toISOString() };
    const { provider, calls } = await open((_, response) =>
      reply(response, 200, { data: [batch('b2', old)], has_more: true }),
    );
    const none = { outcome: 'ok', value: { kind: 'none' } };
    expect(await provider.find(JOB, { signal })).toEqual(none);
    expect(calls()).toHaveLength(1);
  });

  it('has all its results with null counts and an empty error file', async () => {
    const ended = {
      status: 'Completed',
      output_file_id: 'out',
      error_file_id: 'err',
      request_counts: { total: null, completed: null, failed: null },
    };
    const answer = '{"custom_id":"a","response":{"status_code":200,"body":{}},"error":null}\n';
    const { provider } = await open(({ call }, response) => {
      if (!call.endsWith('/content')) reply(response, 200, batch('b1', ended));
      else response.end(call.includes('/out/') ? answer : '');
    });
    const look = await provider.status('b1', { signal });
    if (look.outcome !== 'ok') throw new Error(look.failure.message);
    expect(look.value).toMatchObject({ state: 'completed', counts: null, hasAllResults: true });
    const taken: LineResult[] = [];
    const result = await provider.results(look.value, (one) => void taken.push(one), RESULTS);
    expect(result).toEqual({ outcome: 'ok', value: { results: 1, malformed: 0 } });
    expect(taken).toMatchObject([{ kind: 'answer', wireId: 'a' }]);
  });

  it('may have 100,000 lines, and is looked at once a minute at most', async () => {
    const { provider } = await open(() => undefined);
    expect(provider.capabilities).toMatchObject({ maxLines: 100_000, minPollMs: 60_000 });
  });
});
