import OpenAI from 'openai';
import { startSimulator, type Simulator } from '../../simulator/main';
import type { RecordingBackend, Seen } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, submit } from '../support/stack';
import { until } from '../support/until';
import { outcomeOf, runRequests } from './run-batch';

/**
 * One Nightshift delegates to another (docs/design/delegation.md). The model server of each records what it gets:
 * `near` answers interactive models, `far` answers what was delegated. Other types of providers are simulated.
 */
let simulator: Simulator;
let near: RecordingBackend;
let far: RecordingBackend;
let provider: TestStack;
let stack: TestStack;

const LINES = 60;
const WAIT_MS = 90_000;
/**
 * Models: `here` has a gateway, `there` and `both` a provider, `both` also a gateway for what is left, `heard` a
 * recogniser, `translated` a provider with a format of its own.
 */
const MODEL_AT_PROVIDER = 'there-2026';

const gatewayOf = ({ url }: RecordingBackend) => ({
  ...{ url, request_timeout: '60s', max_retries: 0 },
  ...{ initial_backoff: '100ms', max_backoff: '1s' },
});

beforeAll(async () => {
  [near, far] = await Promise.all([startRecordingBackend(5), startRecordingBackend(5)]);
  provider = await startStack({
    processes: 1,
    store: 'filesystem',
    config: { global_inference_gateway: gatewayOf(far), batch: { cancel_grace: '1s' } },
  });
  const other = { type: 'nightshift', url: provider.baseUrl };
  simulator = await startSimulator({ port: 0 });
  const heard = {
    ...{
      type: 'aws_transcribe',
      region: 'eu-central-1',
      url: `${simulator.url}/providers/transcribe`,
    },
    storage: { type: 's3', bucket: 'recordings', url: `${simulator.url}/providers/s3` },
  };
  const translated = { type: 'anthropic', url: `${simulator.url}/providers/anthropic` };
  const price = { input: 1, output: 2 };
  stack = await startStack({
    env: { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' },
    config: {
      model_gateways: { here: gatewayOf(near), both: gatewayOf(near) },
      providers: {
        other: { ...other, poll_initial: '500ms', poll_max: '1s' },
        heard: { ...heard, poll_initial: '500ms', poll_max: '1s' },
        translated: { ...translated, poll_initial: '500ms', poll_max: '1s' },
      },
      delegates: {
        there: { provider: 'other', model: MODEL_AT_PROVIDER, price },
        both: { provider: 'other', generations: 1 },
        heard: { provider: 'heard' },
        translated: { provider: 'translated' },
      },
      worker: { heartbeat_timeout: '8s' },
    },
  });
}, 2 * STACK_START_MS);

afterAll(async () => {
  await Promise.all([stack?.stop(), provider?.stop()]);
  stack?.remove();
  provider?.remove();
  await Promise.all([near?.close(), far?.close(), simulator?.close()]);
}, WAIT_MS);

afterEach(() => {
  for (const backend of [near, far]) {
    backend.seen.length = 0;
    backend.hold = () => false;
    backend.judge = () => null;
  }
});

/** What the provider was asked to run, newest first. */
async function jobs(): Promise<OpenAI.Batches.Batch[]> {
  return (await provider.client.batches.list()).data;
}

/** Waits until the provider has a job beside those that it had, and returns how it stands at each call. */
async function nextJob(had: number): Promise<() => Promise<OpenAI.Batches.Batch>> {
  await until(async () => (await jobs()).length > had, WAIT_MS, 'a new job');
  const id = (await jobs())[0]?.id ?? '';
  return () => provider.client.batches.retrieve(id);
}

const modelsOf = (seen: readonly Seen[]) =>
  new Set(seen.map(({ body }) => (JSON.parse(body) as { model: string }).model));

function expectEveryLineOnce(output: readonly { custom_id: string }[]): void {
  expect(output.map(({ custom_id }) => custom_id)).toEqual(
    Array.from({ length: LINES }, (_, i) => `c-${i}`),
  );
}

it('answers a batch of local and delegated models in input order, each line once', async () => {
  const model = (i: number) => (i % 3 === 0 ? 'here' : 'there');
  const { id } = await submit(stack.client, chatLines(LINES, model));
  const { batch, output, errors } = await outcomeOf(stack.client, id, WAIT_MS);
  expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: LINES } });
  expect(errors).toEqual([]);
  expectEveryLineOnce(output);
  expect([near.seen.length, far.seen.length]).toEqual([LINES / 3, (LINES / 3) * 2]);
  expect([...modelsOf(far.seen)]).toEqual([MODEL_AT_PROVIDER]);
  const [job] = await jobs();
  expect(job).toMatchObject({
    status: 'completed',
    request_counts: { completed: far.seen.length },
  });
  // The ids of clients stay here.
  const input = await (await provider.client.files.content(job?.input_file_id ?? '')).text();
  expect(input).not.toMatch(/c-\d/);
}, 120_000);

it('transcribes uploaded recordings in each format at the provider, and others at their gateway', async () => {
  const recording = await stack.client.files.create({
    file: await OpenAI.toFile(Buffer.alloc(64_000, 'sound'), 'call.wav'),
    purpose: 'user_data',
  });
  const heard = { model: 'heard', file_id: recording.id };
  const formats = ['json', 'text', 'srt', 'vtt', 'verbose_json'];
  const requests = [
    ...formats.map((format) => ({ ...heard, language: 'en', response_format: format })),
    {
      model: 'heard',
      file_data: Buffer.alloc(64_000, 'sound').toString('base64'),
      filename: 'a.mp3',
    },
    { ...heard, model: 'here' },
    { ...heard, file_id: 'file-unknown' },
  ];
  const ended = await runRequests(
    stack.client,
    requests.map((body) => ({ body })),
    { endpoint: '/v1/audio/transcriptions' },
  );
  expect(ended.batch).toMatchObject({
    status: 'completed',
    request_counts: { completed: 7, failed: 1 },
  });
  expect(ended.output.map(({ custom_id: id }) => id)).toEqual(
    requests.slice(0, 7).map((_, i) => `c-${i}`),
  );
  const texts = ended.output.slice(0, 6).map(({ response }) => response?.body['text']);
  const [spoken] = texts;
  const cue = expect.stringMatching(/^(1|WEBVTT\n)\n00:00:00[.,]000 --> 00:00:/);
  expect(texts).toEqual([spoken, `${String(spoken)}\n`, cue, cue, spoken, spoken]);
  expect(ended.output[4]?.response?.body).toMatchObject({ language: 'english', duration: 1.9 });
  expect(ended.errors.map(({ custom_id: id, error }) => [id, error?.code])).toEqual([
    ['c-7', 'input_file_not_found'],
  ]);
  expect(near.seen.map(({ body }) => body)).toEqual([
    expect.stringContaining('filename="call.wav"'),
  ]);
}, 120_000);

it('translates requests and answers, and says which member of a line it cannot translate', async () => {
  const messages = [{ role: 'user', content: 'How far is the moon?' }];
  const chat = { model: 'translated', messages };
  const ended = await runRequests(
    stack.client,
    [chat, { ...chat, n: 2 }, { ...chat, max_tokens: 3 }].map((body) => ({ body })),
    { endpoint: '/v1/chat/completions' },
  );
  expect(ended.batch).toMatchObject({
    status: 'completed',
    request_counts: { completed: 2, failed: 1 },
  });
  const choiceOf = ({ response }: (typeof ended.output)[number]) =>
    (response?.body['choices'] as { finish_reason: string; message: object }[])[0];
  expect(ended.output.map(({ response }) => response?.body)).toMatchObject([
    { object: 'chat.completion', model: 'translated' },
    { usage: { completion_tokens: 3 } },
  ]);
  expect(ended.output.map(choiceOf)).toMatchObject([
    { finish_reason: 'stop', message: { role: 'assistant', content: expect.any(String) } },
    { finish_reason: 'length' },
  ]);
  expect(ended.errors).toMatchObject([
    {
      custom_id: 'c-1',
      response: {
        status_code: 400,
        body: { error: { code: 'unsupported_parameter', param: 'n' } },
      },
    },
  ]);
}, 120_000);

it('runs what the provider could not answer at the gateway of the model', async () => {
  far.judge = ({ body }) =>
    /question \d*7"/.test(body) ? { status: 500, body: '{"error":{"message":"broken"}}' } : null;
  const { id } = await submit(
    stack.client,
    chatLines(LINES, () => 'both'),
  );
  const { batch, output } = await outcomeOf(stack.client, id, WAIT_MS);
  expect(batch.status).toBe('completed');
  expectEveryLineOnce(output);
  expect(near.seen.map(({ body }) => /question \d+/.exec(body)?.[0]).sort()).toEqual(
    [7, 17, 27, 37, 47, 57].map((i) => `question ${i}`).sort(),
  );
}, 120_000);

it('cancels the job at the provider, and delivers what it has answered', async () => {
  far.hold = () => far.seen.filter(({ answered }) => answered).length >= 20;
  const had = (await jobs()).length;
  const { id } = await submit(
    stack.client,
    chatLines(LINES, () => 'there'),
  );
  const job = await nextJob(had);
  await until(async () => ((await job()).request_counts?.completed ?? 0) >= 20, WAIT_MS, 'answers');
  await stack.client.batches.cancel(id);
  await until(async () => (await job()).status.startsWith('cancel'), 20_000, 'the cancel there');
  const { batch, output, errors } = await outcomeOf(stack.client, id, WAIT_MS);
  expect(batch.status).toBe('cancelled');
  expect(output.length).toBeGreaterThanOrEqual(20);
  expect(output.length + errors.length).toBe(LINES);
  expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_cancelled']));
}, 120_000);

it('goes on with the same job when its worker is killed', async () => {
  const before = (await jobs()).length;
  far.hold = () => true;
  const { id } = await submit(
    stack.client,
    chatLines(LINES, () => 'there'),
  );
  await until(() => far.seen.length > 0, WAIT_MS, 'the first request of the provider');
  for (const pid of stack.pidsOf('worker')) process.kill(pid, 'SIGKILL');
  far.hold = () => false;
  const { batch, output } = await outcomeOf(stack.client, id, WAIT_MS);
  expect(batch.status).toBe('completed');
  expectEveryLineOnce(output);
  expect((await jobs()).length - before).toBe(1);
  expect(far.seen).toHaveLength(LINES);
}, 120_000);

it('shows jobs, calls, lines and cost in metrics', async () => {
  const { id } = await submit(
    stack.client,
    chatLines(10, () => 'there'),
  );
  await outcomeOf(stack.client, id, WAIT_MS);
  const all = (await stack.metric('worker', 'provider_')).join('\n');
  for (const series of [
    'calls_total{provider="other",call="create",outcome="accepted",process="worker"}',
    'calls_total{provider="other",call="results",outcome="ok",process="worker"}',
    'jobs_total{provider="other",status="completed",process="worker"}',
    'job_duration_seconds_count{process="worker",provider="other"}',
    'lines_total{provider="other",model="there",outcome="answered",process="worker"}',
    'cost_usd_total{provider="other",model="there",process="worker"}',
  ]) {
    expect(all).toContain(`provider_${series} `);
  }
}, 120_000);
