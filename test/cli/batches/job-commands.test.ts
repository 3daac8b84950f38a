import { runClient, type ClientRun } from './client-run';
import { BATCH_ID, startFakeServer, type FakeServer } from './fake-server';

const COLLECTED = {
  ...{ id: 'job_1', object: 'batch.job', batch_id: BATCH_ID, model: 'gpt', provider: 'openai' },
  ...{ provider_type: 'openai', external_input_id: 'file-there' },
  ...{ status: 'partial_complete', provider_status: 'completed', external_id: 'batch_there' },
  request_counts: { total: 1_200, completed: 1_190, failed: 4 },
  ...{ generation: 0, cost: 1.5, poll_failures: 2, created_at: 1_700_000_000, error: null },
};
const FAILED = {
  ...COLLECTED,
  ...{ id: 'job_2', status: 'failed', external_id: null, cost: null, poll_failures: 0 },
  error: { code: 'token_limit_exceeded', message: 'The provider refused the job.' },
};

let server: FakeServer;
beforeEach(async () => {
  server = await startFakeServer();
  server.jobs = [COLLECTED, FAILED];
});
afterEach(() => server.close());

const nightshift = (...args: string[]): ClientRun =>
  runClient(args, { env: { OPENAI_BASE_URL: server.url } });

describe('nightshift jobs', () => {
  it('shows status, counts, cost and the id at the provider of each job of a batch', async () => {
    const client = nightshift('jobs', BATCH_ID);
    expect(await client.done).toBe(0);
    const [heading, first, second] = client.out().split('\n');
    expect(heading).toMatch(/^model +provider +status/);
    expect(first).toMatch(
      /^gpt +openai +partial_complete +1,194\/1,200 +4 +\$1\.50 .* batch_there$/,
    );
    expect(second).toMatch(/failed \(token_limit_exceeded\) .* -$/);
  });

  it('shows the jobs of the newest batches without an id', async () => {
    server.jobs = [COLLECTED];
    const client = nightshift('jobs', '--limit', '3');
    expect(await client.done).toBe(0);
    const lines = client.out().trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^batch /);
    expect(server.count('GET', /nightshift/)).toBe(3);
  });

  it('prints the list with --json, and says if there is none', async () => {
    const json = nightshift('jobs', BATCH_ID, '--json');
    expect(await json.done).toBe(0);
    expect(JSON.parse(json.out())).toEqual([COLLECTED, FAILED]);
    server.jobs = [];
    const none = nightshift('jobs', BATCH_ID);
    expect(await none.done).toBe(0);
    expect(none.out()).toBe('no jobs at providers\n');
  });

  it('prints the shape of other batch services with --provider-state', async () => {
    const client = nightshift('jobs', BATCH_ID, '--provider-state');
    expect(await client.done).toBe(0);
    const job = { model: 'gpt', status: 'PARTIAL_COMPLETE', external_job_id: 'batch_there' };
    const failed = { model: 'gpt', status: 'FAILED', external_job_id: null };
    expect(JSON.parse(client.out())).toEqual({
      ...{ task_type: 'completion', input_dataset_ids: ['file-input'] },
      jobs: [
        { ...job, transient_failures: 2 },
        { ...failed, error: 'token_limit_exceeded', transient_failures: 0 },
      ],
    });
    const without = nightshift('jobs', '--provider-state');
    expect(await without.done).toBe(1);
    expect(without.err()).toContain('needs the id of a batch');
  });

  it('prints the shape of the service that transcribes, with the recordings of jobs that have one', async () => {
    const heard = { ...COLLECTED, provider_type: 'aws_transcribe', provider: 'heard' };
    const input = 'job_1/en-US/n1.json.wav';
    server.jobs = [
      { ...heard, external_input_id: input, request_counts: { total: 1, completed: 1, failed: 0 } },
      heard,
    ];
    const client = nightshift('jobs', BATCH_ID, '--provider-state');
    expect(await client.done).toBe(0);
    expect(JSON.parse(client.out())).toMatchObject({
      ...{ task_type: 'transcription', provider: 'AWS', dataset_ids: ['file-input'] },
      jobs: [
        { gcs_uri: input, filename: 'n1.json.wav' },
        { gcs_uri: null, filename: null },
      ],
    });
  });

  it('says that another server has no such list', async () => {
    server.jobs = null;
    const client = nightshift('jobs', BATCH_ID);
    expect(await client.done).toBe(1);
  });
});

describe('nightshift show', () => {
  it('adds the jobs of a batch and what they cost', async () => {
    const client = nightshift('show', BATCH_ID);
    expect(await client.done).toBe(0);
    expect(client.out()).toMatch(/provider cost +\$1\.50/);
    expect(client.out()).toContain('batch_there');
  });

  it('shows a batch of a server that knows no jobs', async () => {
    server.jobs = null;
    const client = nightshift('show', BATCH_ID);
    expect(await client.done).toBe(0);
    expect(client.out()).not.toContain('provider');
  });
});
