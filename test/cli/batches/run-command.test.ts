import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BATCH_ID } from './fake-server';
import {
  LINE,
  OUTPUT,
  ERRORS,
  IN_PROGRESS,
  ALL_WELL,
  SOME_FAILED,
  useRunFixture,
} from './run-fixture';

const fixture = useRunFixture();

describe('nightshift run', () => {
  it('uploads, watches, and saves the results next to the fixture.input, with exit status 0', async () => {
    fixture.server.script = [IN_PROGRESS, ALL_WELL];
    const client = fixture.run([
      '--metadata',
      'team=search',
      '--metadata',
      'note=a=b',
      '--window',
      '2h',
    ]);
    expect(await client.done).toBe(0);
    expect(readFileSync(join(fixture.folder, 'input.output.jsonl'), 'utf8')).toBe(OUTPUT);
    expect(readdirSync(fixture.folder)).toEqual(['input.jsonl', 'input.output.jsonl']);
    const upload = fixture.server.seen.find(({ path }) => path === '/v1/files');
    expect(upload?.body).toContain('filename="input.jsonl"');
    expect(upload?.body).toContain(LINE);
    const create = fixture.server.seen.find(
      (one) => one.method === 'POST' && one.path === '/v1/batches',
    );
    expect(JSON.parse(create?.body ?? '')).toEqual({
      input_file_id: 'file-input',
      endpoint: '/v1/embeddings',
      completion_window: '2h',
      metadata: { team: 'search', note: 'a=b' },
    });
    expect(client.err()).toContain(`created ${BATCH_ID}`);
    expect(client.err()).toContain('in_progress 25%, 1 of 4');
    expect(client.out()).toMatch(/requests +1: 1 completed, 0 failed/);
  });

  it('exits with 3 and counts failures by code if some requests failed', async () => {
    fixture.server.script = [SOME_FAILED];
    const client = fixture.run();
    expect(await client.done).toBe(3);
    expect(readFileSync(join(fixture.folder, 'input.errors.jsonl'), 'utf8')).toBe(ERRORS);
    expect(client.out()).toMatch(/2 {2}request_timeout +no answer/);
    expect(client.out()).toMatch(/1 {2}HTTP 429 rate_limit_exceeded +too many/);
  });

  it('exits with 2 and shows the input lines that the server rejected', async () => {
    const data = [
      { code: 'invalid_json_line', message: 'not JSON\u001b[31m', param: null, line: 7 },
      { code: 'empty_file', message: 'no requests', param: null, line: null },
    ];
    fixture.server.script = [{ status: 'failed', failed_at: 1_700_000_001, errors: { data } }];
    const client = fixture.run();
    expect(await client.done).toBe(2);
    expect(client.out()).toMatch(/line 7 +invalid_json_line +not JSON\?\[31m/);
    expect(client.out()).toMatch(/file +empty_file/);
    expect(readdirSync(fixture.folder)).toEqual(['input.jsonl']);
  });

  it.each([
    ['expired', 5],
    ['cancelled', 4],
  ])('saves the partial results of an %s batch and exits with %i', async (status, code) => {
    fixture.server.script = [
      { ...SOME_FAILED, status, completed_at: null, [`${status}_at`]: 1_700_000_009 },
    ];
    expect(await fixture.run().done).toBe(code);
    expect(existsSync(join(fixture.folder, 'input.errors.jsonl'))).toBe(true);
  });

  it('prints one JSON document with --json', async () => {
    fixture.server.script = [SOME_FAILED];
    const client = fixture.run(['--json']);
    expect(await client.done).toBe(3);
    expect(JSON.parse(client.out())).toMatchObject({
      batch: { id: BATCH_ID, status: 'completed' },
      output: { target: join(fixture.folder, 'input.output.jsonl'), bytes: OUTPUT.length },
      errors: { bytes: ERRORS.length },
      failures: [{ code: 'request_timeout', count: 2 }, { count: 1 }],
    });
  });

  it('writes only answers to stdout with -o -', async () => {
    fixture.server.script = [SOME_FAILED];
    const client = fixture.run(['-o', '-']);
    expect(await client.done).toBe(3);
    expect(client.out()).toBe(OUTPUT);
    expect(client.err()).toMatch(/errors +.*input.errors.jsonl/);
  });

  it('sends key, tenant and headers, and never prints the key', async () => {
    fixture.server.script = [ALL_WELL];
    const flags = ['--tenant', 'ann', '--header', 'X-Team: a: b'];
    const client = fixture.run(flags, { env: { OPENAI_API_KEY: 'sk-secret' } });
    expect(await client.done).toBe(0);
    for (const { headers } of fixture.server.seen) {
      expect(headers).toMatchObject({
        authorization: 'Bearer sk-secret',
        'x-maas-username': 'ann',
        'x-team': 'a: b',
      });
    }
    expect(client.out() + client.err()).not.toContain('sk-secret');
  });

  it('draws a colored bar on a terminal, without colors if NO_COLOR is set', async () => {
    fixture.server.script = [IN_PROGRESS, ALL_WELL];
    const colored = fixture.run([], { isTTY: true });
    expect(await colored.done).toBe(0);
    expect(colored.err()).toContain('\r\u001b[K');
    expect(colored.out()).toContain('\u001b[32mcompleted\u001b[0m');
    fixture.server.script = [ALL_WELL];
    const plain = fixture.run(['--force'], { isTTY: true, env: { NO_COLOR: '1' } });
    expect(await plain.done).toBe(0);
    expect(plain.out() + plain.err()).not.toMatch(/\u001b\[\d+m/);
  });
});

describe('result files of nightshift run', () => {
  it('that exist are not overwritten without --force, and nothing is sent', async () => {
    writeFileSync(join(fixture.folder, 'input.output.jsonl'), 'precious');
    const client = fixture.run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('exists: add --force');
    expect(fixture.server.seen).toEqual([]);
    fixture.server.script = [ALL_WELL];
    expect(await fixture.run(['--force']).done).toBe(0);
    expect(readFileSync(join(fixture.folder, 'input.output.jsonl'), 'utf8')).toBe(OUTPUT);
  });

  it('that appear during the run are not overwritten', async () => {
    const target = join(fixture.folder, 'input.output.jsonl');
    fixture.server.script = [ALL_WELL];
    fixture.server.react = ({ path }) => {
      if (path.endsWith('/content')) writeFileSync(target, 'precious');
      return null;
    };
    const client = fixture.run();
    expect(await client.done).toBe(1);
    expect(readFileSync(target, 'utf8')).toBe('precious');
    expect(client.err()).toContain(`nightshift results ${BATCH_ID}`);
    expect(readdirSync(fixture.folder)).toEqual(['input.jsonl', 'input.output.jsonl']);
  });

  it('never replace the fixture.input, even with --force or through a link', async () => {
    const alias = join(fixture.folder, 'alias.jsonl');
    symlinkSync(fixture.input, alias);
    const client = fixture.run(['-o', alias, '--force']);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('is the input file');
    expect(readFileSync(fixture.input, 'utf8')).toBe(LINE);
  });

  it('must be two different files', async () => {
    const client = fixture.run([
      '-o',
      join(fixture.folder, 'x'),
      '--errors',
      join(fixture.folder, 'x'),
    ]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('would both go to');
  });

  it('are downloaded again if the connection breaks', async () => {
    fixture.server.script = [SOME_FAILED];
    let breaks = 1;
    fixture.server.react = ({ path }) =>
      path.includes('file-errors') && breaks-- > 0 ? 'cut' : null;
    const client = fixture.run();
    expect(await client.done).toBe(3);
    expect(client.err()).toContain('downloading again');
    expect(readFileSync(join(fixture.folder, 'input.errors.jsonl'), 'utf8')).toBe(ERRORS);
    expect(client.out()).toMatch(/2 {2}request_timeout/);
    expect(readdirSync(fixture.folder)).toHaveLength(3);
  });

  it('are not downloaded again once bytes went to stdout', async () => {
    fixture.server.script = [ALL_WELL];
    fixture.server.react = ({ path }) => (path.endsWith('/content') ? 'cut' : null);
    const client = fixture.run(['-o', '-']);
    expect(await client.done).toBe(6);
    expect(client.out()).toBe('{"id":"half');
    expect(client.err()).toContain(`nightshift results ${BATCH_ID} -o -`);
  });

  it('are written into a device without replacing it', async () => {
    fixture.server.script = [SOME_FAILED];
    expect(await fixture.run(['-o', '/dev/null', '--errors', '/dev/null']).done).toBe(3);
    expect(readdirSync(fixture.folder)).toEqual(['input.jsonl']);
  });
});

describe('the input of nightshift run', () => {
  it.each([
    ['does not exist', null, 'there is no file'],
    ['is empty', '', 'is empty'],
    ['has only blank lines', '\n \n', 'all its lines are blank'],
    ['is not JSON Lines', '\n{\n  "a": 1\n}\n', 'line 2 is not JSON'],
    ['has no url', '{"a":1}\n', 'has no "url"'],
    ['is an array', '[]\n', 'has no "url"'],
  ])('is refused before anything is sent if it %s', async (_what, text, words) => {
    if (text === null) rmSync(fixture.input);
    else writeFileSync(fixture.input, text);
    const client = fixture.run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(words);
    expect(fixture.server.seen).toEqual([]);
  });

  it('may begin with a byte order mark and blank lines', async () => {
    writeFileSync(fixture.input, `\ufeff\r\n${LINE}`);
    fixture.server.script = [ALL_WELL];
    expect(await fixture.run().done).toBe(0);
  });

  it('is not checked locally if --endpoint is given', async () => {
    writeFileSync(fixture.input, 'not JSON at all\n');
    fixture.server.script = [ALL_WELL];
    expect(await fixture.run(['--endpoint', '/v1/responses']).done).toBe(0);
    expect(fixture.server.seen.at(2)?.body).toContain('"/v1/responses"');
  });
});
