import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { ensureBuilt } from '../../cli/prepare.js';
import { packageRoot } from '../../platform/package-root';
import { wav } from '../core/audio/duration/recordings';
import { freePort } from '../support/free-port';
import { startGatewayProcess, type GatewayProcess } from '../support/gateway-process';
import { STACK_START_MS, startStack, type TestStack } from '../support/stack';
import { until } from '../support/until';
import { createBatch, inputLines, outcomeOf, runRequests, type TestRequest } from './run-batch';

/** Batches of recordings and of speech through the whole stack, with the simulator's audio worker. */

const TEST_MS = 180_000;
const WAIT_MS = 120_000;
/** A model whose lines have one try. */
const [MODEL, ONE_TRY] = ['whisper-1', 'one-try'];
const TRANSCRIPTIONS = { endpoint: '/v1/audio/transcriptions' };
const LINES = 200;
/** So long are calls that a batch lasts for some seconds, ms. */
const CALL_MS = 400;
const transcriber = (name: string) => ({ name, tasks: ['TRANSCRIBE'], max_batch: 8 });
const SPEAKER = { name: 'tts-1', tasks: ['SPEAK'], streaming: false, voices: ['alloy'] };
/** The simulated audio worker, if no test says otherwise. */
const AUDIO = { base_ms: 50, models: [transcriber(MODEL), transcriber(ONE_TRY), SPEAKER] };
/** A quarter of the large recordings of one batch. */
const SHEDDABLE_BYTES = 2 * 1024 * 1024;

let stack: TestStack;
let gateway: GatewayProcess;
let simulator: ChildProcess;
/** Of the simulator: model server and audio worker. */
let ports: readonly [number, number];
let folder: string;

beforeAll(async () => {
  ensureBuilt();
  folder = mkdtempSync(join(tmpdir(), 'nightshift-audio-'));
  ports = [await freePort(), await freePort()];
  simulator = runSimulator();
  await setAudio(AUDIO);
  const audio = {
    ...{ workers: [{ address: `127.0.0.1:${ports[1]}` }], max_file_bytes: '1MiB' },
    spool: { dir: join(folder, 'spool'), sheddable_bytes: SHEDDABLE_BYTES },
  };
  const backends = [`http://127.0.0.1:${ports[0]}`];
  gateway = await startGatewayProcess({ backends, settings: { audio } });
  const route = {
    ...{ url: gateway.url, api_key_file: gateway.tokenFile, send_fairness_header: true },
    ...{ request_timeout: '60s', initial_backoff: '50ms', max_backoff: '500ms' },
  };
  stack = await startStack({
    config: {
      model_gateways: {
        ...Object.fromEntries([MODEL, 'tts-1'].map((name) => [name, { ...route, max_retries: 8 }])),
        [ONE_TRY]: { ...route, max_retries: 0 },
      },
      concurrency: { global: 32, per_model: 32 },
      worker: { heartbeat_timeout: '3s' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await gateway?.stop();
  simulator?.kill('SIGKILL');
  rmSync(folder, { recursive: true });
}, 60_000);

function runSimulator(): ChildProcess {
  const program = join(packageRoot(), 'dist', 'cli', 'main.js');
  const args = ['simulator', '--port', String(ports[0]), '--audio-port', String(ports[1])];
  return spawn(process.execPath, [program, ...args], { stdio: 'ignore' });
}

/** Changes the simulated audio worker; waits until it is up. */
async function setAudio(audio: object): Promise<void> {
  const url = `http://127.0.0.1:${ports[0]}/simulator/config`;
  const init = { method: 'PUT', body: JSON.stringify({ audio }) };
  const isSet = async () => (await fetch(url, init).catch(() => null))?.ok === true;
  await until(isSet, WAIT_MS, 'the simulator');
}

/** A recording unlike all others. */
function recording(number: number, seconds = 0.2): Buffer {
  const note = Buffer.from('note\x04\0\0\0....', 'latin1');
  note.writeUInt32LE(number, 8);
  return wav(seconds, { extra: note });
}

/** What the simulator hears in a recording, and in no other one. */
function mark(audio: Buffer): string {
  return createHash('sha256').update(audio).digest('hex').slice(0, 12);
}

async function uploaded(audio: Buffer): Promise<string> {
  const file = await OpenAI.toFile(audio, 'recording.wav');
  return (await stack.client.files.create({ file, purpose: 'user_data' })).id;
}

/** One half of the lines names files; the other one contains its recordings. */
async function linesOf(model: string, audio: readonly Buffer[]) {
  const files: string[] = [];
  const requests: TestRequest[] = [];
  for (const [i, bytes] of audio.entries()) {
    if (i % 2 === 0) {
      const id = await uploaded(bytes);
      files.push(id);
      requests.push({ body: { model, file_id: id } });
    } else {
      const file_data = bytes.toString('base64');
      requests.push({ body: { model, file_data, filename: `${i}.wav` } });
    }
  }
  return { files, requests };
}

/** Waits for the end of a batch, which must have the text of each recording once. */
async function expectOwnTexts(id: string, audio: readonly Buffer[]): Promise<void> {
  const { batch, output, errors } = await outcomeOf(stack.client, id, WAIT_MS);
  expect(errors).toEqual([]);
  expect(batch.status).toBe('completed');
  const heard = output.map(({ custom_id, response }) => [
    custom_id,
    String(response?.body['text']).split(' ')[1],
  ]);
  expect(heard).toEqual(audio.map((bytes, i) => [`c-${i}`, mark(bytes)]));
}

/** Kills a process and waits for the next one. */
async function killed(pidNow: () => number | null): Promise<void> {
  const pid = pidNow();
  process.kill(pid ?? 0, 'SIGKILL');
  await until(() => ![null, pid].includes(pidNow()), WAIT_MS, 'another process', 10);
}

it(
  'gives each of 200 recordings its own text once, though every part is killed and files are deleted',
  async () => {
    const audio = Array.from({ length: LINES }, (_, i) => recording(i));
    const { files, requests } = await linesOf(MODEL, audio);
    await setAudio({ base_ms: CALL_MS });
    const text = inputLines(TRANSCRIPTIONS.endpoint, requests);
    const { id } = await createBatch(stack.client, text, TRANSCRIPTIONS);
    const counts = async () => (await stack.client.batches.retrieve(id)).request_counts;
    const answered = (count: number) =>
      until(
        async () => ((await counts())?.completed ?? 0) >= count,
        WAIT_MS,
        `${count} answers`,
        20,
      );
    await answered(1);
    await Promise.all(files.map((file) => stack.client.files.delete(file)));
    simulator.kill('SIGKILL');
    await until(() => simulator.signalCode !== null, WAIT_MS, 'the end of the simulator', 10);
    simulator = runSimulator();
    await setAudio({ ...AUDIO, base_ms: CALL_MS });
    await answered(30);
    await killed(gateway.pid);
    await answered(60);
    await killed(() => stack.pidNow('worker'));
    expect((await counts())?.completed).toBeLessThan(LINES);
    await expectOwnTexts(id, audio);
  },
  TEST_MS,
);

it(
  'costs no line a try that finds the spool full, nor a user anything',
  async () => {
    await setAudio(AUDIO);
    const users = new OpenAI({
      ...{ baseURL: `${gateway.url}/v1`, apiKey: 'unused', maxRetries: 0 },
    });
    const audio = Array.from({ length: 32 }, (_, i) => recording(i, 8));
    const bytes = audio.reduce((sum, { length }) => sum + length, 0);
    expect(bytes).toBeGreaterThan(3 * SHEDDABLE_BYTES);
    const { requests } = await linesOf(ONE_TRY, audio);
    const text = inputLines(TRANSCRIPTIONS.endpoint, requests);
    const { id } = await createBatch(stack.client, text, TRANSCRIPTIONS);
    const own = recording(1_000, 8);
    const dropped = () => stack.metric('worker', 'model_requests_dropped_total');
    for (let isOver = false; !isOver;) {
      const file = await OpenAI.toFile(own, 'mine.wav');
      const answer = await users.audio.transcriptions.create({ model: ONE_TRY, file });
      expect(answer.text).toContain(mark(own));
      const { status } = await stack.client.batches.retrieve(id);
      isOver = !['validating', 'in_progress', 'finalizing'].includes(status);
    }
    await expectOwnTexts(id, audio);
    expect((await dropped()).join('\n')).toMatch(/"one-try",code="queue_bytes_exceeded".*\} [1-9]/);
  },
  TEST_MS,
);

it(
  'speaks the lines of a batch, and unpacks them into files',
  async () => {
    const requests = ['wav', 'mp3', 'pcm'].map((response_format, i) => ({
      customId: `say/${i}`,
      body: { model: 'tts-1', voice: 'alloy', input: `line ${i}`, response_format },
    }));
    const spoken = await runRequests(stack.client, requests, { endpoint: '/v1/audio/speech' });
    expect(spoken.errors).toEqual([]);
    const said = spoken.output.map(({ response }) =>
      Buffer.from(String(response?.body['audio']), 'base64'),
    );
    const dir = join(folder, 'spoken');
    const program = join(packageRoot(), 'cli', 'nightshift.js');
    const results = ['-o', join(folder, 'answers'), '--errors', join(folder, 'errors')];
    const args = ['results', spoken.batch.id, ...results, '--audio', dir];
    const env = { ...process.env, OPENAI_BASE_URL: stack.baseUrl, OPENAI_API_KEY: 'unused' };
    await promisify(execFile)(process.execPath, [program, ...args], { env, timeout: WAIT_MS });
    const names = readdirSync(dir).sort();
    expect(names).toEqual(['say_0.wav', 'say_1.mp3', 'say_2.pcm']);
    expect(names.map((name) => readFileSync(join(dir, name)))).toEqual(said);
    expect(said[0]?.toString('latin1', 0, 4)).toBe('RIFF');
    // 60 ms for each of the six characters, in 16 bits at 24 kHz.
    expect(said[2]).toHaveLength(0.36 * 24_000 * 2);
  },
  TEST_MS,
);
