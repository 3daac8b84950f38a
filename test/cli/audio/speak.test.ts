import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WireSpeechRequest } from '../../../proto/audio-messages';
import { startAudioGateway, startWorker } from '../../gateway/audio/audio-fixtures';
import { closeAll } from '../../gateway/gateway-fixtures';
import { MODEL, SERVING } from '../../support/audio-server';
import { runAudioCommand } from './run-audio-command';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-speak-'))));
afterEach(async () => {
  await closeAll();
  rmSync(folder, { recursive: true, force: true });
});

const PIECE = Buffer.alloc(300_000, 'sound');

async function scene() {
  const requests: WireSpeechRequest[] = [];
  const models = [{ ...MODEL, name: 'tts-1', voices: ['alloy'], tasks: ['SPEAK'] }];
  const worker = await startWorker(undefined, {
    health: () => ({ ...SERVING, models }) as never,
    speech: (call) => {
      requests.push(call.request);
      for (const durationS of [1, 2]) call.write({ audio: PIECE, durationS });
      call.end();
    },
  });
  const gateway = await startAudioGateway([worker]);
  const run = (args: readonly string[], isTTY = false) =>
    runAudioCommand(['speak', ...args, '--gateway-url', `${gateway.url}/v1`], { isTTY });
  return { requests, run };
}

it('writes speech to a file, in the format of its extension', async () => {
  const { requests, run } = await scene();
  const target = join(folder, 'evening.flac');
  const args = ['Good evening.', '-o', target, '--speed', '1.5', '--instructions', 'Softly.'];
  expect(await run(args)).toMatchObject({ code: 0, stdout: '' });
  expect(readFileSync(target).equals(Buffer.concat([PIECE, PIECE]))).toBe(true);
  expect(requests).toMatchObject([
    { input: 'Good evening.', voice: 'alloy', format: 'flac', speed: 1.5, instructions: 'Softly.' },
  ]);
});

it('writes speech to stdout, but not to a terminal', async () => {
  const { requests, run } = await scene();
  const piped = await run(['Hello.', '-o', '-', '--format', 'wav']);
  expect(piped.bytes.equals(Buffer.concat([PIECE, PIECE]))).toBe(true);
  expect(await run(['Hello.', '-o', '-'], true)).toMatchObject({ code: 1, stdout: '' });
  expect(requests).toHaveLength(1);
});

it('leaves no file if speech breaks off, and says so', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' });
    response.write(PIECE, () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/v1`;
    const target = join(folder, 'a.mp3');
    const ran = await runAudioCommand(['speak', 'Hello.', '-o', target, '--gateway-url', url]);
    expect(ran.stderr).toContain('The gateway broke the speech off: try again.');
    expect(ran.code).toBeGreaterThan(0);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    server.close();
  }
});

it('leaves no file if the gateway refuses, and says why', async () => {
  const { run } = await scene();
  const ran = await run(['Hello.', '-o', join(folder, 'a.mp3'), '--voice', 'nobody']);
  expect(ran.code).toBe(1);
  expect(ran.stderr).toMatch(/The gateway answered 400: .*no voice "nobody". Choose one of: alloy/);
  expect((await run(['x', '-o', join(folder, 'a'), '--format', 'midi'])).stderr).toMatch(
    /"midi" is no/,
  );
  expect(readdirSync(folder)).toEqual([]);
});
