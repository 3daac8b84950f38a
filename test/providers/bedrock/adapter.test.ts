import { createRequest, folderOf, jobIdOfName } from '../../../providers/bedrock/job-request';
import { readBedrockJob } from '../../../providers/bedrock/job-state';
import type { Provider } from '../../../providers/provider';
import { openProvider } from '../../../providers/registry';
import type { RemoteFolder } from '../../../providers/remote-folder';
import { created, ended, idOf, signal, uploaded } from '../conformance/steps';
import { closeHosts, openSimulatedHost, QUICK, type SimulatedHost } from '../simulated-host';

afterEach(closeHosts);

const STORE = '8a0e1c1e-1d0a-4a6f-9d1c-0d9a3f7f0001';
const HOUR_MS = 3_600_000;
const OTHER_JOB = `job_${'d'.repeat(32)}`;

async function open(): Promise<{ host: SimulatedHost; provider: Provider }> {
  const host = await openSimulatedHost('AKIA:secret');
  const provider = openProvider({
    type: 'bedrock',
    url: `${host.url}/providers/bedrock`,
    apiKey: host.keyFile,
    region: 'eu-central-1',
    roleArn: 'arn:aws:iam::000000000000:role/batch',
    storage: { bucket: 'bucket', prefix: '', url: `${host.url}/providers/s3` },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { host, provider };
}

it('names the job, its token, its places and its hours', () => {
  const folder = { uri: (name: string) => `s3://bucket/${name}` } as RemoteFolder;
  const jobId = `job_${'a'.repeat(32)}`;
  const job = {
    ...{ jobId, storeId: STORE, endpoint: '/v1/chat/completions', model: 'amazon.nova', lines: 1 },
    ...{ hops: 0, remoteInput: `${jobId}/input.jsonl`, window: '24', inline: null },
  };
  const name = `ns-8a0e1c1e1d0a4a6f9d1c0d9a3f7-${'a'.repeat(32)}`;
  expect(name).toHaveLength(63);
  expect(jobIdOfName(name)).toBe(jobId);
  expect(createRequest(job, { folder, roleArn: 'arn:role' })).toEqual({
    ...{ jobName: name, clientRequestToken: name, roleArn: 'arn:role', modelId: 'amazon.nova' },
    modelInvocationType: 'Converse',
    inputDataConfig: {
      s3InputDataConfig: { s3InputFormat: 'JSONL', s3Uri: `s3://bucket/${jobId}/input.jsonl` },
    },
    outputDataConfig: { s3OutputDataConfig: { s3Uri: `s3://bucket/${jobId}/output/` } },
    timeoutDurationInHours: 24,
  });
});

it('asks for whole hours between a day and a week', async () => {
  const { provider } = await open();
  const windows = [1, 30.5, 999].map((hours) => provider.completionWindow(hours * HOUR_MS));
  expect(windows).toEqual(['24', '30', '168']);
});

it('creates no second job with the token of the first', async () => {
  const { host, provider } = await open();
  const job = await uploaded(provider);
  expect(idOf(await created(provider, job))).toBe(idOf(await created(provider, job)));
  expect((await host.stats()).creates).toEqual({ [job.jobId]: 1 });
});

it('lists the open jobs of its own installation', async () => {
  const { host, provider } = await open();
  const job = await uploaded(provider);
  idOf(await created(provider, job));
  await host.configure({ hold: true, max_page: 1 });
  const running = await uploaded(provider, undefined, OTHER_JOB);
  const externalId = idOf(await created(provider, running));
  const elsewhere = await uploaded(provider);
  idOf(await created(provider, { ...elsewhere, storeId: 'another' }));
  const marker = { storeId: job.storeId, sinceMs: Date.now() - HOUR_MS };
  expect(await provider.listMarked?.(marker, { signal })).toEqual({
    outcome: 'ok',
    value: [{ externalId, jobId: OTHER_JOB }],
  });
});

it('deletes the folder of its job only', async () => {
  const { host, provider } = await open();
  const job = await uploaded(provider);
  const externalId = idOf(await created(provider, job));
  const { resultFiles } = await ended(provider, externalId);
  await uploaded(provider, undefined, OTHER_JOB);
  const remains = { externalId, remoteInputs: [job.remoteInput ?? '', 'input.jsonl'], resultFiles };
  expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
  expect((await host.stats()).files).toHaveLength(1);
  expect(folderOf('input.jsonl')).toBeNull();
});

describe('a job of Amazon Bedrock', () => {
  const read = (job: object) =>
    readBedrockJob({ jobArn: 'arn', ...job }, (text) => text.replaceAll('secret', '***'));

  it.each<[string, object]>([
    ['Submitted', { state: 'submitted' }],
    ['Scheduled', { state: 'submitted' }],
    ['InProgress', { state: 'running' }],
    ['PartiallyCompleted', { state: 'expired' }],
    ['Expired', { state: 'expired' }],
    ['Stopping', { state: 'cancelling' }],
    ['NewWord', { state: 'running', isKnownState: false }],
    ['constructor', { state: 'running', isKnownState: false }],
  ])('is read in the state %s', (status, expected) => {
    expect(read({ status })?.status).toMatchObject(expected);
  });

  it('says why it has failed, without secrets', () => {
    expect(read({ status: 'Failed', message: 'no secret' })?.status.error).toEqual({
      code: null,
      message: 'no ***',
    });
    expect(read({ status: 'Completed', message: 'done' })?.status.error).toBeNull();
  });

  it('promises results by its counts, or by its state if it counts nothing', () => {
    const counts = { totalRecordCount: 2, successRecordCount: 0, errorRecordCount: 0 };
    expect(read({ status: 'Stopped', ...counts })?.hasResults).toBe(false);
    expect(read({ status: 'Stopped', ...counts, errorRecordCount: 1 })?.hasResults).toBe(true);
    expect(read({ status: 'Completed' })?.hasResults).toBe(true);
    expect(read({ status: 'Stopped' })?.hasResults).toBe(true);
    expect(read({ status: 'Expired' })?.hasResults).toBe(false);
  });

  it('is unreadable without a state', () => {
    expect(read({})).toBeNull();
  });
});
