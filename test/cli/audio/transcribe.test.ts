import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  answerCall,
  startAudioGateway,
  startWorker,
  type HeldCall,
} from '../../gateway/audio/audio-fixtures';
import { closeAll } from '../../gateway/gateway-fixtures';
import { wav } from '../../gateway/audio/forms';
import { failWith } from '../../support/audio-server';
import { startFakeServer, type FakeServer } from '../batches/fake-server';
import { freePort } from '../../support/free-port';
import { runAudioCommand } from './run-audio-command';

let folder: string;
let talk: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-transcribe-'));
  talk = join(folder, 'talk.wav');
  writeFileSync(talk, wav(20_000));
});
afterEach(async () => {
  await closeAll();
  rmSync(folder, { recursive: true, force: true });
});

/** A gateway, and the options of each call at its worker. */
async function scene(answer: (call: HeldCall) => void = (call) => answerCall(call)) {
  const calls: HeldCall[] = [];
  const worker = await startWorker((call) => {
    calls.push(call);
    answer(call);
  });
  const gateway = await startAudioGateway([worker]);
  const run = (args: readonly string[], isTTY = false) =>
    runAudioCommand(['transcribe', ...args, '--gateway-url', `${gateway.url}/v1`], { isTTY });
  return { calls, gateway, run };
}

describe('nightshift audio transcribe FILE', () => {
  it('prints the text', async () => {
    const { run, calls } = await scene();
    const words = ['--language', 'en', '--prompt', 'Names: Ada.', '--realtime'];
    expect(await run([talk, ...words])).toMatchObject({ stdout: 'hello world\n', code: 0 });
    expect(calls[0]?.options).toMatchObject({ model: 'whisper-1', language: 'en' });
    expect(calls[0]?.options).toMatchObject({ prompt: 'Names: Ada.', filename: 'talk.wav' });
    expect(calls[0]?.audio.equals(readFileSync(talk))).toBe(true);
  });

  it('shows the text on a terminal as it comes, without control characters', async () => {
    const { run } = await scene((call) => {
      call.rpc.write({ delta: 'hello \u001b[2J' });
      call.rpc.write({ delta: 'world' });
      answerCall(call);
    });
    expect((await run([talk], true)).stdout).toBe('hello  [2Jworld\n');
  });

  it('writes other formats to a file, which it does not overwrite without --force', async () => {
    const { run, calls } = await scene();
    const target = join(folder, 'talk.srt');
    const args = [talk, '--format', 'srt', '-o', target];
    expect(await run(args)).toMatchObject({ stdout: '', code: 0 });
    expect(readFileSync(target, 'utf8')).toBe('1\n00:00:00,000 --> 00:00:01,500\nhello world\n');
    expect(await run(args)).toMatchObject({ code: 1 });
    expect(calls).toHaveLength(1);
    expect(await run([...args, '--force'])).toMatchObject({ code: 0 });
    const whole = await run([talk, '--format', 'verbose_json']);
    expect(JSON.parse(whole.stdout)).toMatchObject({ task: 'transcribe', duration: 1.5 });
  });

  it.each([
    ['an unknown model', ['--model', 'm9'], 1, /404: .*m9.* Its models: .*whisper-1/],
    ['a missing file', ['none.wav'], 1, /there is no file none.wav/],
  ])('says what to do about %s', async (_, args, code, message) => {
    const { run } = await scene();
    const files = args[0] === 'none.wav' ? [] : [talk];
    const ran = await run([...files, ...args]);
    expect(ran.code).toBe(code);
    expect(ran.stderr).toMatch(message);
  });

  it('says that no gateway answers, or that it cannot serve now', async () => {
    const away = await runAudioCommand([
      'transcribe',
      talk,
      '--gateway-url',
      `http://127.0.0.1:${await freePort()}/v1`,
    ]);
    expect(away.code).toBe(6);
    expect(away.stderr).toMatch(/No gateway answers at .*\/v1 \(.*ECONNREFUSED/);
    const { run } = await scene(({ rpc }) => failWith(rpc, 13, 'the engine broke'));
    const broken = await run([talk]);
    expect(broken.code).toBe(6);
    expect(broken.stderr).toMatch(/The gateway answered 502/);
  });
});

describe('nightshift audio transcribe FILES', () => {
  let server: FakeServer;
  beforeEach(async () => {
    server = await startFakeServer();
    server.script = [
      {
        ...{ status: 'completed', completed_at: 1_700_000_100 },
        ...{ output_file_id: 'file-o', error_file_id: 'file-e' },
        request_counts: { total: 2, completed: 1, failed: 1 },
      },
    ];
    const body = { text: '1\nhello\n\n' };
    const line = { custom_id: '0', response: { status_code: 200, body }, error: null };
    server.files.set('file-o', `${JSON.stringify(line)}\n`);
    const error = { code: 'x', message: 'no sound' };
    server.files.set('file-e', `${JSON.stringify({ custom_id: '1', response: null, error })}\n`);
    writeFileSync(join(folder, 'other.mp3'), 'sound');
  });
  afterEach(() => server.close());

  const run = (args: readonly string[]) =>
    runAudioCommand(['transcribe', talk, join(folder, 'other.mp3'), ...args], {
      env: { OPENAI_BASE_URL: server.url },
    });

  it('runs a batch, and writes transcripts beside the recordings', async () => {
    const ran = await run(['--format', 'srt', '--language', 'en']);
    expect(ran.code).toBe(3);
    expect(readFileSync(join(folder, 'talk.srt'), 'utf8')).toBe('1\nhello\n');
    expect(readdirSync(folder).sort()).toEqual(['other.mp3', 'talk.srt', 'talk.wav']);
    expect(ran.stderr).toMatch(/other\.mp3: no sound\n[^]*wrote 1 of 2 transcripts/);
    const uploads = server.seen.filter(
      ({ method, path }) => method === 'POST' && /files$/.test(path),
    );
    const purposes = uploads.map(({ body }) => /name="purpose"\r\n\r\n(\w+)/.exec(body)?.[1]);
    expect(purposes).toEqual(['user_data', 'user_data', 'batch']);
    const request = { model: 'whisper-1', file_id: 'file-input', response_format: 'srt' };
    expect(uploads[2]?.body).toContain(
      JSON.stringify({
        ...{ custom_id: '0', method: 'POST', url: '/v1/audio/transcriptions' },
        body: { ...request, language: 'en' },
      }),
    );
  });

  it('makes the folder of --out', async () => {
    const out = join(folder, 'new', 'transcripts');
    expect((await run(['--out', out])).code).toBe(3);
    expect(readdirSync(out)).toEqual(['talk.txt']);
  });

  it('refuses what would overwrite files or mix them up, before it uploads', async () => {
    writeFileSync(join(folder, 'talk.txt'), 'old');
    expect((await run([])).stderr).toMatch(/talk\.txt exists: add --force/);
    expect((await run(['--out', talk])).stderr).toMatch(/talk\.wav is no folder/);
    expect((await run(['--realtime'])).stderr).toMatch(/leave out --realtime/);
    const same = [talk, join(folder, 'talk.mp3'), '--force'];
    expect((await run(same)).stderr).toMatch(/would get two transcripts/);
    expect(server.seen).toEqual([]);
  });
});
