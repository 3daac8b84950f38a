import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { closeAll, onClose } from '../../gateway/gateway-fixtures';
import {
  connect,
  LATE_MS,
  liveGateway,
  liveStream,
  type LiveStream,
  liveWorker,
} from '../../gateway/audio/realtime/realtime-scene';
import { until } from '../../support/until';
import { runAudioCommand } from './run-audio-command';

jest.setTimeout(60_000);
afterEach(closeAll);

const run = (args: readonly string[], isTTY = false) =>
  runAudioCommand(['stream', ...args], { isTTY });

function wav(audio: Buffer, { code = 1, channels = 1, rate = 16_000, bits = 16 } = {}): string {
  const head = Buffer.alloc(44);
  head.write('RIFF');
  head.writeUInt32LE(36 + audio.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(code, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt16LE(bits, 34);
  head.write('data', 36);
  head.writeUInt32LE(audio.length, 40);
  return file('talk.wav', Buffer.concat([head, audio]));
}

function file(name: string, bytes: Buffer): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'nightshift-stream-'));
  onClose(async () => rmSync(folder, { recursive: true }));
  writeFileSync(path.join(folder, name), bytes);
  return path.join(folder, name);
}

/** A worker that answers each commit with one final text. */
async function answeringScene() {
  const streams: LiveStream[] = [];
  const worker = await liveWorker({
    stream: (call) => {
      const stream = liveStream(call);
      streams.push(stream);
      call.on('data', ({ commit }) => {
        if (commit !== true) return;
        stream.say('FINAL', { text: 'go forward \u001b[2J ten meters' });
        stream.say('ITEM_DONE');
      });
    },
  });
  const gateway = await liveGateway([worker]);
  // When a session can be opened, the command can open one too.
  (await connect(gateway)).socket.close();
  return { streams, flags: ['--gateway-url', `${gateway.url}/v1`] };
}

describe('nightshift audio stream', () => {
  it('prints the transcript of a WAV file, which it sends at the speed that is asked for', async () => {
    const { streams, flags } = await answeringScene();
    const audio = Buffer.alloc(16_001 * 2, 7);
    const startedAtMs = performance.now();
    const seen = await run([wav(audio), ...flags, '--speed', '2', '--language', 'en']);
    expect(performance.now() - startedAtMs).toBeGreaterThan(450);
    expect(seen).toMatchObject({ code: 0, stdout: 'go forward  [2J ten meters\n', stderr: '' });
    const stream = await until(() => streams[0], LATE_MS, 'a stream');
    expect(stream.frames[0]?.options).toMatchObject({ sampleRateHz: 16_000, language: 'en' });
    expect(stream.bytes()).toBe(audio.length);
  });

  it('prints every event with --json, and text as it grows on a terminal', async () => {
    const { flags } = await answeringScene();
    const raw = file('talk.raw', Buffer.alloc(4_801));
    const args = [raw, ...flags, '--speed', '0', '--rate', '8000'];
    const { stdout } = await run([...args, '--json']);
    const types = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type);
    expect(types).toContain('conversation.item.input_audio_transcription.completed');
    expect((await run(args, true)).stdout).toBe('go forward  [2J ten meters\n');
  });

  it('says what is wrong with a file, a model and a gateway', async () => {
    const { flags } = await answeringScene();
    const stereo = await run([wav(Buffer.alloc(8), { channels: 2 }), ...flags]);
    expect(stereo).toMatchObject({ code: 1 });
    expect(stereo.stderr).toContain('ffmpeg');
    expect((await run(['/nowhere.wav', ...flags])).stderr).toContain('ENOENT');
    const unknown = await run([wav(Buffer.alloc(8)), ...flags, '--model', 'nobody']);
    expect(unknown.stderr).toContain('404');
    const closed = await run([wav(Buffer.alloc(8)), '--gateway-url', 'http://127.0.0.1:9/v1']);
    expect(closed).toMatchObject({ code: 6 });
    expect(closed.stderr).toContain('--gateway-url');
  });
});
