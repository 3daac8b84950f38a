import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { SpeechNames } from '../../../cli/batches/speech-names';
import { runClient, type ClientRun } from './client-run';
import { BATCH_ID, startFakeServer, type FakeServer } from './fake-server';

let server: FakeServer;
let folder: string;

beforeEach(async () => {
  server = await startFakeServer();
  folder = mkdtempSync(join(tmpdir(), 'nightshift-cli-'));
  server.script = [{ status: 'completed', completed_at: 1_700_000_100, output_file_id: 'file-o' }];
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function results(args: readonly string[]): ClientRun {
  const files = ['-o', join(folder, 'out.jsonl'), '--errors', join(folder, 'err.jsonl')];
  const env = { OPENAI_BASE_URL: server.url };
  return runClient(['results', BATCH_ID, ...files, ...args], { env });
}

function speechLine(customId: string, audio: Buffer, format = 'mp3'): string {
  const body = {
    ...{ object: 'audio.speech', model: 'm', format, bytes: audio.length },
    audio: audio.toString('base64'),
  };
  const response = { status_code: 200, request_id: 'r', body };
  return `${JSON.stringify({ id: 'l', custom_id: customId, response, error: null })}\n`;
}

describe('nightshift results --audio', () => {
  it('writes each line of speech to a file, and says where', async () => {
    const [one, two] = [Buffer.alloc(200_000, 'a\n\u2028'), Buffer.from([0, 10, 13, 255])];
    const text =
      '{"custom_id":"t","response":{"body":{"text":"an \\"object\\":\\"audio.speech\\""}}}\n';
    const lines = speechLine('first', one) + text + '\n{"object":"audio.speech" broken\n';
    server.files.set('file-o', lines + speechLine('second', two, 'wav').trimEnd());
    const spoken = join(folder, 'deep', 'spoken');
    const client = results(['--audio', spoken]);
    expect(await client.done).toBe(0);
    expect(readdirSync(spoken).sort()).toEqual(['first.mp3', 'second.wav']);
    expect(readFileSync(join(spoken, 'first.mp3')).equals(one)).toBe(true);
    expect(readFileSync(join(spoken, 'second.wav')).equals(two)).toBe(true);
    expect(client.out()).toMatch(/audio +2 files in .*spoken/);
  });

  it('overwrites no file without --force, and says what to do', async () => {
    server.files.set('file-o', speechLine('taken', Buffer.from('new')));
    writeFileSync(join(folder, 'taken.mp3'), 'old');
    const careful = results(['--audio', folder]);
    expect(await careful.done).toBe(1);
    expect(careful.err()).toContain('taken.mp3 exists: add --force');
    expect(readFileSync(join(folder, 'taken.mp3'), 'utf8')).toBe('old');
    const forced = results(['--audio', folder, '--force']);
    expect(await forced.done).toBe(0);
    expect(readFileSync(join(folder, 'taken.mp3'), 'utf8')).toBe('new');
  });

  it('asks for an output file, and for a folder, before it downloads', async () => {
    writeFileSync(join(folder, 'file'), '');
    const piped = runClient(['results', BATCH_ID, '-o', '-', '--audio', folder], {
      env: { OPENAI_BASE_URL: server.url },
    });
    expect(await piped.done).toBe(1);
    expect(piped.err()).toContain('--audio reads the output file: name a file with -o');
    const misplaced = results(['--audio', join(folder, 'file')]);
    expect(await misplaced.done).toBe(1);
    expect(misplaced.err()).toContain('is no folder');
    expect(server.seen).toEqual([]);
  });
});

describe('SpeechNames', () => {
  it('keeps plain ids, and tells others apart', () => {
    const names = new SpeechNames();
    const ids = ['talk-1.2', '../../etc/passwd', 'a/b', 'a_b', 'A b', '', '.ssh', 'ü'.repeat(200)];
    expect(ids.map((id) => names.next(id, 'mp3'))).toEqual([
      ...['talk-1.2.mp3', '___.._etc_passwd.mp3', 'a_b.mp3', 'a_b~2.mp3', 'A_b~3.mp3'],
      ...['_.mp3', '_ssh.mp3', `${'_'.repeat(100)}.mp3`],
    ]);
    expect(names.next('x', '../y')).toBe('x.bin');
  });

  it('names no other folder and never two files alike, whatever the ids', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), fc.constantFrom('mp3', 'wav'))), (lines) => {
        const names = new SpeechNames();
        const given = lines.map(([id, format]) => names.next(id, format));
        for (const name of given) expect(name).toMatch(/^[A-Za-z0-9_-][A-Za-z0-9._~-]*$/);
        expect(new Set(given.map((name) => name.toLowerCase())).size).toBe(given.length);
      }),
    );
  });
});
