import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runDemoBatch } from '../../../cli/stack/demo-batch';
import { sampleAnswers } from '../../../cli/stack/sample-answers';
import { packageRoot } from '../../../platform/package-root';
import { BATCH_ID, startFakeServer, type FakeServer } from '../batches/fake-server';

const ENDED = {
  status: 'completed',
  request_counts: { total: 2, completed: 1, failed: 1 },
  output_file_id: 'file-output',
  error_file_id: 'file-errors',
};

let folder: string;
let server: FakeServer;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-demo-'));
  server = await startFakeServer();
  jest.spyOn(process.stderr, 'write').mockReturnValue(true);
});
afterEach(async () => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
  await server.close();
});

function write(name: string, lines: readonly unknown[]): string {
  const file = join(folder, name);
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return file;
}

function runDemo(signal = new AbortController().signal, onCreated = jest.fn()) {
  const input = write('input.jsonl', [{ custom_id: 'a', url: '/v1/chat/completions' }]);
  return runDemoBatch({
    api: server.url,
    access: { key: 'demo-key', headers: { 'x-tenant': 'demo' } },
    input,
    endpoint: '/v1/chat/completions',
    results: join(folder, 'results'),
    signal,
    onCreated,
  });
}

describe('the batch of the demo', () => {
  it('is uploaded, created, watched to its end and downloaded', async () => {
    server.script = [{ status: 'in_progress' }, ENDED];
    server.files.set('file-output', '{"custom_id":"a"}\n').set('file-errors', '{}\n');
    const onCreated = jest.fn();
    const done = await runDemo(undefined, onCreated);
    expect(onCreated).toHaveBeenCalledWith(BATCH_ID);
    expect(done?.batch).toMatchObject(ENDED);
    const { output, errors } = done?.results ?? {};
    expect(output?.target).toBe(join(folder, 'results', `${BATCH_ID}_output.jsonl`));
    expect(readFileSync(output?.target ?? '', 'utf8')).toBe('{"custom_id":"a"}\n');
    expect(errors?.target).toBe(join(folder, 'results', `${BATCH_ID}_error.jsonl`));
  });

  it('is sent with the key and headers of the stack, and none from the environment', async () => {
    const env = { ...process.env };
    process.env['OPENAI_CUSTOM_HEADERS'] = 'x-secret: theirs';
    process.env['OPENAI_API_KEY'] = 'theirs';
    try {
      server.script = [{ ...ENDED, output_file_id: null, error_file_id: null }];
      await runDemo();
    } finally {
      process.env = env;
    }
    for (const { headers } of server.seen) {
      expect(headers).toMatchObject({ authorization: 'Bearer demo-key', 'x-tenant': 'demo' });
      expect(headers).not.toHaveProperty('x-secret');
    }
  });

  it('is left running when the demo is stopped', async () => {
    server.script = [{ status: 'in_progress' }];
    const abort = new AbortController();
    const done = runDemo(
      abort.signal,
      jest.fn().mockImplementation(() => abort.abort()),
    );
    expect(await done).toBeNull();
    expect(server.count('POST', /cancel/)).toBe(0);
  });
});

describe('sample answers', () => {
  const answer = (custom_id: string, body: unknown) => ({ custom_id, response: { body } });

  it('are the first lines of an output file, each answer on one line', async () => {
    const chat = (content: string) => ({ choices: [{ message: { content } }] });
    const file = write('output.jsonl', [
      answer('a', chat('first\nanswer')),
      answer('b', chat('x'.repeat(100))),
      answer('c', chat('third')),
    ]);
    expect(await sampleAnswers(file, 2)).toEqual([
      ['a', 'first answer'],
      ['b', `${'x'.repeat(69)}…`],
    ]);
  });

  it.each([
    ['a completion', { choices: [{ text: 'words' }] }, 'words'],
    ['a response', { output: [{ content: [{ text: 'words' }] }] }, 'words'],
    ['an embedding', { object: 'list' }, 'list'],
  ])('show the text of %s, or the kind of its object', async (_kind, body, expected) => {
    const file = write('output.jsonl', [answer('a', body)]);
    expect(await sampleAnswers(file, 4)).toEqual([['a', expected]]);
  });
});

it('the example of the demo is 200 requests to one endpoint and two models, each with its own id', () => {
  const text = readFileSync(join(packageRoot(), 'examples', 'demo.jsonl'), 'utf8');
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toHaveLength(200);
  expect(new Set(lines.map(({ custom_id }) => custom_id)).size).toBe(200);
  expect(new Set(lines.map(({ url }) => url))).toEqual(new Set(['/v1/chat/completions']));
  expect(new Set(lines.map(({ body }) => body.model)).size).toBe(2);
  const systems = lines.map(({ body }) => body.messages[0].content);
  expect(new Set(systems).size).toBe(5);
});
