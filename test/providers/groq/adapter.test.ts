import type { Handler } from '../openai/host-fixtures';
import * as host from '../openai/host-fixtures';

const { JOB, batch, create, marker, reply, signal } = host;
const open = (handler: Handler) => host.open(handler, 'groq');
const DAY_MS = 24 * 3_600_000;

afterEach(host.closeAll);

describe('a look-up at Groq', () => {
  it('reads all pages by their cursors, because the list states no order', async () => {
    const old = batch('batch_old', { created_at: 1 });
    const ours = batch('batch_ours', { metadata: marker });
    const { provider, calls } = await open(({ call }, response) => {
      const isFirst = call === 'GET /v1/batches';
      const paging = { next_cursor: isFirst ? 'cursor/2' : null };
      reply(response, 200, { object: 'list', data: [isFirst ? old : ours], paging });
    });
    const found = await provider.find(JOB, { signal });
    expect(found).toMatchObject({ value: { kind: 'job', job: { externalId: 'batch_ours' } } });
    expect(calls()).toEqual(['GET /v1/batches', 'GET /v1/batches?cursor=cursor%2F2']);
  });

  it('fails on a page that has the cursor of the page before', async () => {
    const { provider, calls } = await open((_, response) =>
      reply(response, 200, { object: 'list', data: [], paging: { next_cursor: 'again' } }),
    );
    expect((await provider.find(JOB, { signal })).outcome).toBe('transient');
    expect(calls()).toHaveLength(2);
  });
});

describe('a create at Groq', () => {
  it('asks for whole days that end before the job is given up', async () => {
    const { provider, requests } = await open((_, response) =>
      reply(response, 200, batch('batch_1')),
    );
    expect([1, DAY_MS, 2 * DAY_MS - 1].map(provider.completionWindow)).toEqual([
      '24h',
      '24h',
      '24h',
    ]);
    expect([2 * DAY_MS, 9 * DAY_MS].map(provider.completionWindow)).toEqual(['2d', '7d']);
    expect((await create(provider)).outcome).toBe('accepted');
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ metadata: marker });
  });
});
