import type { LineResult } from '../../../providers/provider';
import {
  JOB,
  batch,
  closeAll,
  error,
  marker,
  open,
  reply,
  signal,
  type Handler,
} from './host-fixtures';
import { RESULTS } from '../calls';

afterEach(closeAll);

describe('a look-up', () => {
  const page = (batches: object[], hasMore = false) => ({ data: batches, has_more: hasMore });
  const paged =
    (...pages: object[]): Handler =>
    (_, response) =>
      reply(response, 200, pages.shift() ?? page([]));

  it('finds the job by its marker on a later page', async () => {
    const { provider, calls } = await open(
      paged(page([batch('b2')], true), page([batch('b1', { metadata: marker })], true)),
    );
    expect(await provider.find(JOB, { signal })).toEqual({
      outcome: 'ok',
      value: { kind: 'job', job: { externalId: 'b1', createdAtMs: 2_000_000 } },
    });
    expect(calls()).toEqual(['GET /v1/batches?limit=100', 'GET /v1/batches?limit=100&after=b2']);
  });

  it('lists the open jobs of this installation back to the given time', async () => {
    const stranger = { ...marker, nightshift_store: 'store-2' };
    const { provider, calls } = await open(
      paged(
        page([batch('b5', { metadata: marker }), batch('b4', { metadata: stranger })], true),
        page(
          [
            batch('b3', { metadata: marker, status: 'completed' }),
            batch('b2', { metadata: { ...marker, nightshift_job: 'job_2' } }),
            batch('b1', { metadata: marker, created_at: 999 }),
          ],
          true,
        ),
      ),
    );
    const listed = await provider.listMarked?.(
      { storeId: 'store-1', sinceMs: 1_000_000 },
      { signal },
    );
    const jobs = [
      { externalId: 'b5', jobId: JOB.jobId },
      { externalId: 'b2', jobId: 'job_2' },
    ];
    expect(listed).toEqual({ outcome: 'ok', value: jobs });
    expect(calls()).toHaveLength(2);
  });

  it('finds a job without a marker by its input file, but not one with the marker of another', async () => {
    const other = { nightshift_job: 'job_other', nightshift_store: 'store-1' };
    const foreign = { nightshift_job: JOB.jobId, nightshift_store: 'store-2' };
    const { provider } = await open(
      paged(
        page([
          batch('b4', { input_file_id: 'file-1', metadata: other }),
          batch('b3', { input_file_id: 'file-1', metadata: foreign }),
          batch('b2', { input_file_id: 'file-2' }),
          batch('b1', { input_file_id: 'file-1', metadata: null }),
        ]),
      ),
    );
    const result = await provider.find(JOB, { signal });
    expect(result).toMatchObject({ value: { kind: 'job', job: { externalId: 'b1' } } });
  });

  it('ends with none at the end of the list, or at a batch that is too old', async () => {
    const { provider, calls } = await open(
      paged(page([]), page([batch('b2'), batch('b1', { created_at: 999 })], true)),
    );
    const none = { outcome: 'ok', value: { kind: 'none' } };
    expect(await provider.find(JOB, { signal })).toEqual(none);
    expect(await provider.find(JOB, { signal })).toEqual(none);
    expect(calls()).toHaveLength(2);
  });

  it.each<[string, Handler]>([
    ['a batch that cannot be read', paged(page([{ id: 'b1' }]))],
    ['a page that cannot be read', paged({ batches: [] })],
    ['an empty page that promises more', paged(page([], true))],
    ['the same page again', paged(page([batch('b1')], true), page([batch('b1')], true))],
    ['a failure', (_, r) => reply(r, 500, error('x'))],
  ])('proves nothing with %s', async (_, handler) => {
    const { provider } = await open(handler);
    expect((await provider.find(JOB, { signal })).outcome).toBe('transient');
  });
});

describe('results', () => {
  const answer = (id: string) =>
    `{"custom_id":"${id}","response":{"status_code":200,"body":{"n":"${id}"}},"error":null}\n`;
  const expired = '{"custom_id":"c","response":null,"error":{"code":"batch_expired"}}';
  const files: Record<string, string> = {
    'file-out': `${answer('a')}broken\n\n${answer('b')}{"custom_id":"${'x'.repeat(2_000)}"}\n`,
    'file-err': expired,
  };
  const ENDED = {
    status: 'expired',
    output_file_id: 'file-out',
    error_file_id: 'file-err',
    request_counts: { total: 3, completed: 2, failed: 1 },
  };
  const host: Handler = ({ call }, response) => {
    const file = /files\/(.+)\/content/.exec(call)?.[1];
    if (file === undefined) reply(response, 200, batch('b1', ENDED));
    else if (files[file] === undefined) reply(response, 404, error('gone'));
    else response.end(files[file]);
  };
  async function ended(handler: Handler = host) {
    const opened = await open(handler);
    const status = await opened.provider.status('b1', { signal });
    if (status.outcome !== 'ok') throw new Error(status.failure.message);
    return { ...opened, job: status.value };
  }

  it('are those of both files, one at a time, and what is no result is counted', async () => {
    const { provider, job } = await ended();
    expect(job).toMatchObject({ state: 'expired', hasAllResults: true });
    const taken: string[] = [];
    let isBusy = false;
    const take = async (result: LineResult) => {
      expect(isBusy).toBe(false);
      isBusy = true;
      await new Promise((resolve) => setImmediate(resolve));
      taken.push(`${result.kind} ${result.wireId}`);
      isBusy = false;
    };
    expect(await provider.results(job, take, RESULTS)).toEqual({
      outcome: 'ok',
      value: { results: 3, malformed: 2 },
    });
    expect(taken).toEqual(['answer a', 'answer b', 'unanswered c']);
  });

  it.each([true, false])(
    'end with the error of their consumer: file at its end %p',
    async (isEnd) => {
      const { provider, job } = await ended(({ call }, response) => {
        if (!call.endsWith('/content')) return reply(response, 200, batch('b1', ENDED));
        response.write(answer('a'));
        if (isEnd) response.end();
      });
      const fault = new Error('the journal is away');
      const take = () => Promise.reject(fault);
      await expect(provider.results(job, take, RESULTS)).rejects.toBe(fault);
    },
  );

  it('are gone with their file, and transient if it is cut off', async () => {
    const { provider, job } = await ended();
    const gone = { ...job, resultFiles: ['file-none'] };
    expect((await provider.results(gone, () => undefined, RESULTS)).outcome).toBe('gone');
    const cut = await ended(({ call }, response) => {
      if (!call.endsWith('/content')) return reply(response, 200, batch('b1', ENDED));
      response.writeHead(200, { 'content-length': 1_000 });
      response.write(answer('a'), () => response.destroy());
    });
    const result = await cut.provider.results(cut.job, () => undefined, RESULTS);
    expect(result.outcome).toBe('transient');
  });
});

describe('the other calls', () => {
  it('show a batch, and that it is gone, but not another batch', async () => {
    const { provider } = await open(({ call }, response) => {
      if (call.endsWith('/none')) reply(response, 404, error('not_found'));
      else reply(response, 200, batch('b1'));
    });
    const look = await provider.status('b1', { signal });
    expect(look).toMatchObject({ value: { externalId: 'b1', state: 'running' } });
    expect((await provider.status('none', { signal })).outcome).toBe('gone');
    expect((await provider.status('b2', { signal })).outcome).toBe('transient');
  });

  it.each<[string, Handler, object]>([
    [
      'a running batch',
      (_, r) => reply(r, 200, batch('b1', { status: 'cancelling' })),
      { value: 'requested' },
    ],
    [
      'an ended batch',
      (_, r) => reply(r, 200, batch('b1', { status: 'completed' })),
      { value: 'ended' },
    ],
    [
      'an ended batch whose host refuses',
      ({ call }, r) =>
        call.startsWith('POST')
          ? reply(r, 409, error('ended'))
          : reply(r, 200, batch('b1', { status: 'expired' })),
      { value: 'ended' },
    ],
    [
      'a running batch whose host refuses',
      ({ call }, r) =>
        call.startsWith('POST') ? reply(r, 400, error('no')) : reply(r, 200, batch('b1')),
      { outcome: 'refused' },
    ],
    ['an unknown batch', (_, r) => reply(r, 404, error('none')), { outcome: 'gone' }],
    ['a batch of a busy host', (_, r) => reply(r, 500, error('busy')), { outcome: 'transient' }],
  ])('cancel %s', async (_, handler, expected) => {
    const { provider } = await open(handler);
    expect(await provider.cancel('b1', { signal })).toMatchObject(expected);
  });

  it('delete all files, of which some may be gone, and stop at a failure', async () => {
    const { provider, calls } = await open(({ call }, response) => {
      if (call.endsWith('gone')) reply(response, 404, error('none'));
      else if (call.endsWith('busy')) reply(response, 500, error('busy'));
      else reply(response, 200, { id: 'x', deleted: true });
    });
    const remains = { externalId: 'b1', remoteInputs: ['gone', 'in'], resultFiles: ['out'] };
    expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
    expect(calls()).toEqual([
      'DELETE /v1/files/gone',
      'DELETE /v1/files/in',
      'DELETE /v1/files/out',
    ]);
    const busy = { ...remains, remoteInputs: ['busy'] };
    expect((await provider.cleanup(busy, { signal })).outcome).toBe('transient');
  });
});
