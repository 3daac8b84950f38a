import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../support/until';
import { closeAll, onClose, startBackend, startGateway, untilHeld } from '../gateway-fixtures';
import {
  answerCall,
  formOf,
  sendForm,
  startAudioGateway,
  startWorker,
  untilCalled,
  untilSpoolEmpty,
} from './audio-fixtures';
import { FORM_TYPE, wav } from './forms';

afterEach(closeAll);

const TOKEN = 'a-token-of-workers';

function tokenFile(): string {
  const dir = mkdtempSync(join(tmpdir(), 'token-'));
  const path = join(dir, 'token');
  writeFileSync(path, TOKEN);
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  return path;
}

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

it.each([1_000, 20_000_000])(
  'sends a form of %i bytes to the pool of its model, byte for byte',
  async (bytes) => {
    const gateway = await startAudioGateway([await startWorker(answerCall)]);
    const { backend } = gateway;
    const body = formOf({ model: 'm', odd: 'kept' }, Buffer.alloc(bytes, 'no audio'));
    const answer = sendForm(gateway, body, { headers: { 'x-request-id': 'mine' } });
    await untilHeld(backend, 1);
    const { body: received, headers, url } = backend.held[0]!;
    expect(digest(received)).toBe(digest(body));
    expect(url).toBe('/v1/audio/transcriptions');
    expect(headers).toMatchObject({
      ...{ 'content-type': FORM_TYPE, 'content-length': String(body.length) },
      'x-request-id': 'mine',
    });
    backend.respond({ text: 'from the pool' });
    expect(await (await answer).json()).toEqual({ text: 'from the pool' });
    await untilSpoolEmpty(gateway);
  },
);

it('sends a whole form again if the first backend refuses it', async () => {
  const seen: string[] = [];
  const refusing = (status: number) =>
    startBackend(({ body }, response) => {
      seen.push(digest(body));
      response.writeHead(seen.length === 1 ? 503 : status).end('{}');
    });
  const gateway = await startGateway([await refusing(200), await refusing(200)]);
  const body = formOf({ model: 'm' }, wav(3_000_000));
  expect((await sendForm(gateway, body)).status).toBe(200);
  expect(seen).toEqual([digest(body), digest(body)]);
  await untilSpoolEmpty(gateway);
});

it('frees the form when its client goes', async () => {
  const gateway = await startAudioGateway([await startWorker(answerCall)]);
  const leaving = new AbortController();
  const body = formOf({ model: 'm' }, wav(1_000_000));
  const sent = sendForm(gateway, body, { signal: leaving.signal });
  sent.catch(() => undefined);
  await untilHeld(gateway.backend, 1);
  leaving.abort();
  await untilSpoolEmpty(gateway);
});

it('prefers an audio worker to a pool, and the pool of a model to that of *', async () => {
  const worker = await startWorker(answerCall);
  const backend = await startBackend((_request, response) => response.end('{"text":"any"}'));
  const gateway = await startAudioGateway(
    [worker],
    {},
    {
      pools: {
        main: { models: ['*'], backends: [{ url: backend.url }], probe: { interval: '50ms' } },
      },
    },
  );
  const textOf = async (model: string) =>
    ((await (await sendForm(gateway, formOf({ model }))).json()) as { text: string }).text;
  await until(async () => (await gateway.flow()).backends[0]?.ready === true, 10_000, 'a backend');
  expect([await textOf('whisper-1'), await textOf('other')]).toEqual(['hello world', 'any']);
});

describe.each([
  ['has never answered', () => null],
  ['loads and does not know its models', () => ({ status: 'LOADING' })],
])('while a worker %s', (_name, health) => {
  async function start(models: readonly string[]) {
    const worker = await startWorker(answerCall, { health: health as never });
    const backend = await startBackend((_request, response) => response.end('{"text":"pool"}'));
    const dir = mkdtempSync(join(tmpdir(), 'spool-'));
    onClose(async () => rmSync(dir, { recursive: true }));
    return startGateway([backend], {
      audio: { workers: [{ address: worker.server.address }], spool: { dir } },
      pools: { main: { models, backends: [{ url: backend.url }], probe: { interval: '50ms' } } },
    });
  }

  const speech = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const body = JSON.stringify({ model: 'tts-1', input: 'Hello.', voice: 'alloy' });

  it.each([[['m']], [['*']]])('models wait for it that no pool of %j names', async (models) => {
    const gateway = await start(models);
    const answers = [
      await sendForm(gateway, formOf()),
      await fetch(`${gateway.url}/v1/audio/speech`, { ...speech, body }),
    ];
    for (const { status, headers } of answers) {
      expect([status, headers.get('x-nightshift-dropped')]).toEqual([503, 'no_backends']);
    }
    await untilSpoolEmpty(gateway);
  });

  it('a model goes to the pool that names it', async () => {
    const gateway = await start(['m', '*']);
    const answer = await sendForm(gateway, formOf({ model: 'm' }));
    expect(await answer.json()).toEqual({ text: 'pool' });
  });
});

/** Sends a line of a batch. */
function sendLine(gateway: { readonly url: string }, body: Buffer) {
  const interim: number[] = [];
  const request = httpRequest(`${gateway.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': FORM_TYPE, authorization: `Bearer ${TOKEN}` },
      'content-length': body.length,
    },
  });
  request.on('information', ({ statusCode }) => interim.push(statusCode));
  const answer = new Promise<{ status: number; dropped: unknown }>((resolve, reject) => {
    request.once('error', reject);
    request.once('response', (response) => {
      response.resume();
      const { 'x-nightshift-dropped': dropped } = response.headers;
      response.once('end', () => resolve({ status: response.statusCode ?? 0, dropped }));
    });
  });
  request.end(body);
  return { interim, answer };
}

it('tells the worker of a batch line that it was dispatched, and not before', async () => {
  const worker = await startWorker();
  const gateway = await startAudioGateway(
    [worker],
    { workers: [{ address: worker.server.address, slots: 1 }], accumulator: { mode: 'single' } },
    { worker_token_file: tokenFile() },
  );
  const first = sendLine(gateway, formOf());
  await untilCalled(worker, 1);
  await until(() => first.interim.length === 1, 10_000, 'an interim answer', 5);
  const second = sendLine(gateway, formOf());
  const waiting = 'scheduler_queue_depth{priority="BATCH",process="gateway"}';
  await until(async () => (await gateway.metric(waiting)) === 1, 10_000, 'a waiting line', 5);
  expect([first.interim, second.interim]).toEqual([[102], []]);
  answerCall(worker.held[0]!);
  await untilCalled(worker, 2);
  answerCall(worker.held[1]!);
  expect(await first.answer).toEqual({ status: 200, dropped: undefined });
  expect(await second.answer).toEqual({ status: 200, dropped: undefined });
  expect(second.interim).toEqual([102]);
});

it('refuses batch lines without room, and lets waiting ones give way to users', async () => {
  const worker = await startWorker();
  const gateway = await startAudioGateway(
    [worker],
    {
      workers: [{ address: worker.server.address, slots: 1 }],
      max_file_bytes: '2MiB',
      spool: { max_bytes: '5MiB', sheddable_bytes: '3MiB' },
    },
    { worker_token_file: tokenFile() },
  );
  const large = formOf({}, wav(1_400_000));
  const user = sendForm(gateway, large);
  await untilCalled(worker, 1);
  const waiting = 'scheduler_queue_depth{priority="BATCH",process="gateway"}';
  const lines = [];
  for (const count of [1, 2]) {
    lines.push(sendLine(gateway, large));
    await until(async () => (await gateway.metric(waiting)) === count, 10_000, 'a waiting line', 5);
  }
  const third = await sendLine(gateway, large).answer;
  expect(third).toEqual({ status: 503, dropped: 'queue_bytes_exceeded' });
  const other = sendForm(gateway, large);
  expect(await lines[1]!.answer).toEqual({ status: 503, dropped: 'evicted' });
  for (let i = 0; i < 3; i++) {
    await untilCalled(worker, i + 1);
    answerCall(worker.held[i]!);
  }
  expect([(await user).status, (await other).status]).toEqual([200, 200]);
  expect((await lines[0]!.answer).status).toBe(200);
  await untilSpoolEmpty(gateway);
});
