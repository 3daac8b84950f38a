import type { ServerResponse } from 'node:http';
import type { JobInput } from '../../../providers/provider';
import { RESULTS } from '../calls';
import type { Handler } from '../openai/host-fixtures';
import * as host from '../openai/host-fixtures';

const { JOB, KEY, reply, send, signal } = host;
const BATCHES = '/v1/messages/batches';
const ANTHROPIC = { type: 'anthropic', apiVersion: '2023-06-01' } as const;
const open = (handler: Handler) => host.openKind(handler, ANTHROPIC, '');
const COUNTS = { processing: 2, succeeded: 0, errored: 0, canceled: 0, expired: 0 };

/** A batch that runs, created 1,000 s after the time from which jobs are looked up. */
const batch = (id: string, changes: object = {}) => ({
  ...{ id, type: 'message_batch', processing_status: 'in_progress', request_counts: COUNTS },
  ...{ created_at: '1970-01-01T00:33:20Z', results_url: null },
  ...changes,
});
const failure = (status: number, type: string, message: string) => (response: ServerResponse) =>
  reply(response, status, { type: 'error', error: { type, message }, request_id: 'req_1' });

/** Lines as they are staged, read in pieces. */
function inputOf(...pieces: string[]): JobInput {
  return {
    bytes: Buffer.byteLength(pieces.join('')),
    async *open() {
      for (const piece of pieces) yield Buffer.from(piece);
    },
  };
}

const newJob = (inline: JobInput) => ({ ...JOB, remoteInput: null, window: null, inline });
const LINES = inputOf('{"a":1}\n{"b', '":2}\n');

afterEach(host.closeAll);

describe('a create at Anthropic', () => {
  it('is one POST with the lines as the elements of an array', async () => {
    const { provider, requests } = await open((_, response) => reply(response, 200, batch('b1')));
    expect(await provider.create(newJob(LINES), send)).toEqual({
      outcome: 'accepted',
      value: { externalId: 'b1', createdAtMs: 2_000_000 },
    });
    expect(requests).toHaveLength(1);
    const [{ call, headers, body } = { call: '', headers: {}, body: '' }] = requests;
    expect([call, body]).toEqual([`POST ${BATCHES}`, '{"requests":[{"a":1},{"b":2}]}']);
    expect(headers).toMatchObject({
      ...{ 'anthropic-version': '2023-06-01', 'x-api-key': KEY },
      ...{ 'content-type': 'application/json', 'content-length': String(body.length) },
    });
    expect(headers).not.toHaveProperty('authorization');
  });

  it.each<[string, string[]]>([
    ['at the end of a line', ['{"a":1}\n', '{"b":2}\n']],
    ['before the end of a line', ['{"a":1}', '\n{"b":2}', '\n']],
    ['nowhere', ['{"a":1}\n{"b":2}\n']],
  ])('sends the same bytes if its input is cut %s', async (_, pieces) => {
    const { provider, requests } = await open((__, response) => reply(response, 200, batch('b1')));
    await provider.create(newJob(inputOf(...pieces)), send);
    expect(requests[0]?.body).toBe('{"requests":[{"a":1},{"b":2}]}');
  });

  it('asks before each piece, and leaves an incomplete body when it may not go on', async () => {
    const { provider, requests } = await open((_, response) => reply(response, 200, batch('b1')));
    let asked = 0;
    // The permission ends after some pieces, as with a lease that is over.
    const mayLeave = () => ++asked <= 3;
    const made = await provider.create(newJob(LINES), { ...send, mayLeave });
    expect(made.outcome).toBe('ambiguous');
    expect(asked).toBe(4);
    expect(requests).toEqual([]);
  });

  it.each<[number, string, string, string]>([
    [400, 'invalid_request_error', 'requests: too many', 'refused'],
    [400, 'invalid_request_error', 'Your credit balance is too low to do that.', 'capacity'],
    [401, 'authentication_error', 'invalid x-api-key', 'auth'],
    [402, 'billing_error', 'no payment method', 'capacity'],
    [403, 'permission_error', 'no access', 'auth'],
    [413, 'request_too_large', 'too large', 'refused'],
    [429, 'rate_limit_error', 'too many requests in the queue', 'capacity'],
    [500, 'api_error', 'oops', 'ambiguous'],
    [529, 'overloaded_error', 'busy', 'ambiguous'],
  ])('that is answered with %i %s (%s) is %s', async (status, type, message, outcome) => {
    const answer = failure(status, type, message);
    const { provider } = await open((_, response) => answer(response));
    expect(await provider.create(newJob(LINES), send)).toMatchObject({
      outcome,
      failure: { status, code: type, message },
    });
  });
});

describe('a look-up at Anthropic', () => {
  it('takes all batches of the size of the job for candidates, back to the first attempt', async () => {
    const many = { request_counts: { ...COUNTS, errored: 1 } };
    const ended = { request_counts: { ...COUNTS, processing: 0, succeeded: 1, expired: 1 } };
    const old = { created_at: '1970-01-01T00:16:39Z' };
    const pages = [
      { data: [batch('b5'), batch('b4', many)], has_more: true, last_id: 'b4' },
      { data: [batch('b3', ended), batch('b2', old)], has_more: true, last_id: 'b2' },
    ];
    const { provider, calls } = await open((_, response) => reply(response, 200, pages.shift()));
    expect(await provider.find(JOB, { signal })).toEqual({
      outcome: 'ok',
      value: { kind: 'candidates', externalIds: ['b5', 'b3'] },
    });
    expect(calls()).toEqual([`GET ${BATCHES}?limit=100`, `GET ${BATCHES}?limit=100&after_id=b4`]);
  });

  it.each<[string, object]>([
    ['a page has a batch without counts', { data: [batch('b1', { request_counts: null })] }],
    ['a page has a batch without a time', { data: [batch('b1', { created_at: 'soon' })] }],
    ['an empty page promises more', { data: [], has_more: true }],
    ['the answer is no page', { batches: [] }],
  ])('is not certain if %s', async (_, page) => {
    const { provider } = await open((__, response) => reply(response, 200, page));
    expect((await provider.find(JOB, { signal })).outcome).toBe('transient');
  });

  it('ends at a host that ignores the cursor', async () => {
    const page = { data: [batch('b1')], has_more: true };
    const { provider, calls } = await open((_, response) => reply(response, 200, page));
    expect((await provider.find(JOB, { signal })).outcome).toBe('transient');
    expect(calls()).toHaveLength(2);
  });
});

describe('a batch of Anthropic', () => {
  const counts = (changes: object) => ({
    request_counts: { ...COUNTS, processing: 0, ...changes },
  });
  const url = { results_url: 'https://elsewhere.test/results' };
  it.each<[string, string, object, object]>([
    ['runs', 'in_progress', {}, { state: 'running', resultFiles: [], hasAllResults: false }],
    ['is being cancelled', 'canceling', {}, { state: 'cancelling' }],
    ['has a new state', 'paused', {}, { state: 'running', isKnownState: false }],
    [
      'has ended',
      'ended',
      { ...counts({ succeeded: 1, errored: 1 }), ...url },
      {
        ...{ state: 'completed', hasAllResults: true, resultFiles: ['b1'], error: null },
        counts: { total: 2, completed: 1, failed: 1 },
      },
    ],
    ['has ended, without results yet', 'ended', counts({ errored: 2 }), { hasAllResults: false }],
    ['has expired', 'ended', counts({ succeeded: 1, expired: 1 }), { state: 'expired' }],
    ['was cancelled', 'ended', counts({ canceled: 1, expired: 1 }), { state: 'cancelled' }],
  ])('is read if it %s', async (_, processing_status, changes, expected) => {
    const answer = batch('b1', { processing_status, ...changes });
    const { provider, calls } = await open((__, response) => reply(response, 200, answer));
    expect(await provider.status('b1', { signal })).toMatchObject({ value: expected });
    expect(calls()).toEqual([`GET ${BATCHES}/b1`]);
  });

  it('is another one if it has another id', async () => {
    const { provider } = await open((_, response) => reply(response, 200, batch('b2')));
    expect((await provider.status('b1', { signal })).outcome).toBe('transient');
  });

  it('has ended if a look says so after its cancel was refused', async () => {
    const refusal = failure(400, 'invalid_request_error', 'already ended');
    const answer = batch('b1', { processing_status: 'ended', ...counts({ succeeded: 2 }) });
    const { provider } = await open(({ call }, response) =>
      call === `POST ${BATCHES}/b1/cancel` ? refusal(response) : reply(response, 200, answer),
    );
    expect(await provider.cancel('b1', { signal })).toEqual({ outcome: 'ok', value: 'ended' });
  });

  it('has its results at the address of its id, whatever address it names', async () => {
    const lines = ['expired', 'canceled'].map((type, i) => ({
      ...{ custom_id: `n${i}`, result: { type } },
    }));
    const ended = { processing_status: 'ended', ...counts({ expired: 1, canceled: 1 }), ...url };
    const { provider, calls } = await open(({ call }, response) =>
      call.endsWith('/results')
        ? response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
        : reply(response, 200, batch('b1', ended)),
    );
    const status = await provider.status('b1', { signal });
    if (status.outcome !== 'ok') throw new Error(status.outcome);
    const reasons: string[] = [];
    const totals = await provider.results(
      status.value,
      (line) => void (line.kind === 'unanswered' && reasons.push(line.reason)),
      RESULTS,
    );
    expect(totals).toEqual({ outcome: 'ok', value: { results: 2, malformed: 0 } });
    expect(reasons).toEqual(['expired', 'cancelled']);
    expect(calls().at(-1)).toBe(`GET ${BATCHES}/b1/results`);
  });

  it('is deleted with all that it has, and nothing is deleted of a job that was not created', async () => {
    const answer = { id: 'b1', type: 'message_batch_deleted' };
    const { provider, calls } = await open((_, response) => reply(response, 200, answer));
    const remains = { externalId: 'b1', remoteInputs: [], resultFiles: ['b1'] };
    const done = { outcome: 'ok', value: undefined };
    expect(await provider.cleanup(remains, { signal })).toEqual(done);
    expect(await provider.cleanup({ ...remains, externalId: null }, { signal })).toEqual(done);
    expect(calls()).toEqual([`DELETE ${BATCHES}/b1`]);
  });
});
