import type { Handler } from '../openai/host-fixtures';
import * as host from '../openai/host-fixtures';
import { UPLOAD } from '../calls';

const { JOB, create, reply, signal } = host;
const open = (handler: Handler) => host.open(handler, 'together');
const job = (id: string, changes: object = {}) => ({
  id,
  status: 'IN_PROGRESS',
  created_at: '2026-01-02T03:04:05Z',
  input_file_id: 'file-1',
  ...changes,
});

afterEach(host.closeAll);

describe('Together', () => {
  it('gets a create without metadata, and answers with the job beside a warning', async () => {
    const { provider, requests } = await open((_, response) =>
      reply(response, 201, { job: job('b1'), warning: '' }),
    );
    expect(await create(provider)).toEqual({
      outcome: 'accepted',
      value: { externalId: 'b1', createdAtMs: Date.UTC(2026, 0, 2, 3, 4, 5) },
    });
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      input_file_id: 'file-1',
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    });
  });

  it('may have the job if its answer has none', async () => {
    const { provider } = await open((_, response) => reply(response, 201, job('b1')));
    expect((await create(provider)).outcome).toBe('ambiguous');
  });

  it('lists all jobs at once, and ours is the one with our input file', async () => {
    const other = job('b0', { input_file_id: 'file-0', created_at: '1970-01-01T00:00:00Z' });
    const { provider, calls } = await open((_, response) =>
      reply(response, 200, [other, job('b1')]),
    );
    const found = await provider.find(JOB, { signal });
    expect(found).toMatchObject({ value: { kind: 'job', job: { externalId: 'b1' } } });
    expect(calls()).toEqual(['GET /v1/batches']);
    const none = await provider.find({ ...JOB, remoteInput: 'file-2' }, { signal });
    expect(none).toEqual({ outcome: 'ok', value: { kind: 'none' } });
  });

  it('gets inputs in its own form', async () => {
    const { provider, requests } = await open((_, response) =>
      reply(response, 200, { id: 'file-1' }),
    );
    const input = {
      bytes: 3,
      async *open() {
        yield Buffer.from('{}\n');
      },
    };
    await provider.upload(JOB, input, UPLOAD);
    expect(requests[0]?.call).toBe('POST /v1/files/upload');
    for (const part of ['name="purpose"\r\n\r\nbatch-api', 'name="file_name"', '{}\n']) {
      expect(requests[0]?.body).toContain(part);
    }
    expect(requests[0]?.body).not.toContain('expires_after');
  });

  it('says why a job failed in one text, and needs both files to be sure of all results', async () => {
    const jobs = [
      job('b1', { status: 'FAILED', error: 'bad file' }),
      job('b1', { status: 'COMPLETED', error: '', output_file_id: 'file-o' }),
      job('b1', { status: 'COMPLETED', output_file_id: 'file-o', error_file_id: 'file-e' }),
    ];
    const { provider } = await open((_, response) => reply(response, 200, jobs.shift()));
    const look = () => provider.status('b1', { signal });
    expect(await look()).toMatchObject({
      value: { state: 'failed', error: { message: 'bad file' } },
    });
    expect(await look()).toMatchObject({ value: { error: null, hasAllResults: false } });
    expect(await look()).toMatchObject({ value: { hasAllResults: true } });
  });
});
