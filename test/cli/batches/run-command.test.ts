import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../support/until';
import { runClient, type ClientRun, type RunSettings } from './client-run';
import { BATCH_ID, openaiError, startFakeServer, type FakeServer } from './fake-server';

const LINE = '{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m"}}\n';
const OUTPUT =
  '{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"r","body":{}},"error":null}\n';
const ERRORS = [
  '{"id":"2","custom_id":"b","response":{"status_code":429,"request_id":"r","body":{"error":{"message":"too many","code":"rate_limit_exceeded"}}},"error":null}',
  '{"id":"3","custom_id":"c","response":null,"error":{"code":"request_timeout","message":"no answer"}}',
  '{"id":"4","custom_id":"d","response":null,"error":{"code":"request_timeout","message":"no answer"}}',
  '',
].join('\n');
const IN_PROGRESS = {
  status: 'in_progress',
  request_counts: { total: 4, completed: 1, failed: 0 },
};
const ALL_WELL = {
  status: 'completed',
  completed_at: 1_700_000_100,
  request_counts: { total: 1, completed: 1, failed: 0 },
  output_file_id: 'file-output',
};
const SOME_FAILED = {
  ...ALL_WELL,
  request_counts: { total: 4, completed: 1, failed: 3 },
  error_file_id: 'file-errors',
};

let server: FakeServer;
let folder: string;
let input: string;

beforeEach(async () => {
  server = await startFakeServer();
  server.files.set('file-output', OUTPUT).set('file-errors', ERRORS);
  folder = mkdtempSync(join(tmpdir(), 'nightshift-cli-'));
  input = join(folder, 'input.jsonl');
  writeFileSync(input, LINE);
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function run(args: readonly string[] = [], settings: RunSettings = {}): ClientRun {
  return runClient(['run', input, '--base-url', server.url, ...args], settings);
}

describe('nightshift run', () => {
  it('uploads, watches, and saves the results next to the input, with exit status 0', async () => {
    server.script = [IN_PROGRESS, ALL_WELL];
    const client = run(['--metadata', 'team=search', '--metadata', 'note=a=b', '--window', '2h']);
    expect(await client.done).toBe(0);
    expect(readFileSync(join(folder, 'input.output.jsonl'), 'utf8')).toBe(OUTPUT);
    expect(readdirSync(folder)).toEqual(['input.jsonl', 'input.output.jsonl']);
    const upload = server.seen.find(({ path }) => path === '/v1/files');
    expect(upload?.body).toContain('filename="input.jsonl"');
    expect(upload?.body).toContain(LINE);
    const create = server.seen.find((one) => one.method === 'POST' && one.path === '/v1/batches');
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
    server.script = [SOME_FAILED];
    const client = run();
    expect(await client.done).toBe(3);
    expect(readFileSync(join(folder, 'input.errors.jsonl'), 'utf8')).toBe(ERRORS);
    expect(client.out()).toMatch(/2 {2}request_timeout +no answer/);
    expect(client.out()).toMatch(/1 {2}HTTP 429 rate_limit_exceeded +too many/);
  });

  it('exits with 2 and shows the input lines that the server rejected', async () => {
    const data = [
      { code: 'invalid_json_line', message: 'not JSON\u001b[31m', param: null, line: 7 },
      { code: 'empty_file', message: 'no requests', param: null, line: null },
    ];
    server.script = [{ status: 'failed', failed_at: 1_700_000_001, errors: { data } }];
    const client = run();
    expect(await client.done).toBe(2);
    expect(client.out()).toMatch(/line 7 +invalid_json_line +not JSON\?\[31m/);
    expect(client.out()).toMatch(/file +empty_file/);
    expect(readdirSync(folder)).toEqual(['input.jsonl']);
  });

  it.each([
    ['expired', 5],
    ['cancelled', 4],
  ])('saves the partial results of an %s batch and exits with %i', async (status, code) => {
    server.script = [
      { ...SOME_FAILED, status, completed_at: null, [`${status}_at`]: 1_700_000_009 },
    ];
    expect(await run().done).toBe(code);
    expect(existsSync(join(folder, 'input.errors.jsonl'))).toBe(true);
  });

  it('prints one JSON document with --json', async () => {
    server.script = [SOME_FAILED];
    const client = run(['--json']);
    expect(await client.done).toBe(3);
    expect(JSON.parse(client.out())).toMatchObject({
      batch: { id: BATCH_ID, status: 'completed' },
      output: { target: join(folder, 'input.output.jsonl'), bytes: OUTPUT.length },
      errors: { bytes: ERRORS.length },
      failures: [{ code: 'request_timeout', count: 2 }, { count: 1 }],
    });
  });

  it('writes only answers to stdout with -o -', async () => {
    server.script = [SOME_FAILED];
    const client = run(['-o', '-']);
    expect(await client.done).toBe(3);
    expect(client.out()).toBe(OUTPUT);
    expect(client.err()).toMatch(/errors +.*input.errors.jsonl/);
  });

  it('sends key, tenant and headers, and never prints the key', async () => {
    server.script = [ALL_WELL];
    const flags = ['--tenant', 'ann', '--header', 'X-Team: a: b'];
    const client = run(flags, { env: { OPENAI_API_KEY: 'sk-secret' } });
    expect(await client.done).toBe(0);
    for (const { headers } of server.seen) {
      expect(headers).toMatchObject({
        authorization: 'Bearer sk-secret',
        'x-maas-username': 'ann',
        'x-team': 'a: b',
      });
    }
    expect(client.out() + client.err()).not.toContain('sk-secret');
  });

  it('draws a colored bar on a terminal, without colors if NO_COLOR is set', async () => {
    server.script = [IN_PROGRESS, ALL_WELL];
    const colored = run([], { isTTY: true });
    expect(await colored.done).toBe(0);
    expect(colored.err()).toContain('\r\u001b[K');
    expect(colored.out()).toContain('\u001b[32mcompleted\u001b[0m');
    server.script = [ALL_WELL];
    const plain = run(['--force'], { isTTY: true, env: { NO_COLOR: '1' } });
    expect(await plain.done).toBe(0);
    expect(plain.out() + plain.err()).not.toMatch(/\u001b\[\d+m/);
  });
});

describe('result files of nightshift run', () => {
  it('that exist are not overwritten without --force, and nothing is sent', async () => {
    writeFileSync(join(folder, 'input.output.jsonl'), 'precious');
    const client = run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('exists: add --force');
    expect(server.seen).toEqual([]);
    server.script = [ALL_WELL];
    expect(await run(['--force']).done).toBe(0);
    expect(readFileSync(join(folder, 'input.output.jsonl'), 'utf8')).toBe(OUTPUT);
  });

  it('that appear during the run are not overwritten', async () => {
    const target = join(folder, 'input.output.jsonl');
    server.script = [ALL_WELL];
    server.react = ({ path }) => {
      if (path.endsWith('/content')) writeFileSync(target, 'precious');
      return null;
    };
    const client = run();
    expect(await client.done).toBe(1);
    expect(readFileSync(target, 'utf8')).toBe('precious');
    expect(client.err()).toContain(`nightshift results ${BATCH_ID}`);
    expect(readdirSync(folder)).toEqual(['input.jsonl', 'input.output.jsonl']);
  });

  it('never replace the input, even with --force or through a link', async () => {
    const alias = join(folder, 'alias.jsonl');
    symlinkSync(input, alias);
    const client = run(['-o', alias, '--force']);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('is the input file');
    expect(readFileSync(input, 'utf8')).toBe(LINE);
  });

  it('must be two different files', async () => {
    const client = run(['-o', join(folder, 'x'), '--errors', join(folder, 'x')]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('would both go to');
  });

  it('are downloaded again if the connection breaks', async () => {
    server.script = [SOME_FAILED];
    let breaks = 1;
    server.react = ({ path }) => (path.includes('file-errors') && breaks-- > 0 ? 'cut' : null);
    const client = run();
    expect(await client.done).toBe(3);
    expect(client.err()).toContain('downloading again');
    expect(readFileSync(join(folder, 'input.errors.jsonl'), 'utf8')).toBe(ERRORS);
    expect(client.out()).toMatch(/2 {2}request_timeout/);
    expect(readdirSync(folder)).toHaveLength(3);
  });

  it('are not downloaded again once bytes went to stdout', async () => {
    server.script = [ALL_WELL];
    server.react = ({ path }) => (path.endsWith('/content') ? 'cut' : null);
    const client = run(['-o', '-']);
    expect(await client.done).toBe(6);
    expect(client.out()).toBe('{"id":"half');
    expect(client.err()).toContain(`nightshift results ${BATCH_ID} -o -`);
  });

  it('are written into a device without replacing it', async () => {
    server.script = [SOME_FAILED];
    expect(await run(['-o', '/dev/null', '--errors', '/dev/null']).done).toBe(3);
    expect(readdirSync(folder)).toEqual(['input.jsonl']);
  });
});

describe('an interrupt of nightshift run', () => {
  const goesOn = { ...IN_PROGRESS };

  async function watched(client: ClientRun): Promise<void> {
    await until(() => server.count('GET', /batches\/batch_/) > 1, 10_000, 'the watch');
    client.signals.emit('SIGINT', 'SIGINT');
  }

  it('leaves the batch running without a terminal, and prints commands to continue', async () => {
    server.script = [goesOn];
    const client = run();
    await watched(client);
    expect(await client.done).toBe(130);
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID} --base-url ${server.url}`);
    expect(client.err()).toContain(`nightshift results ${BATCH_ID} -o`);
    expect(server.count('POST', /cancel/)).toBe(0);
  });

  it('cancels the batch if the user chooses so, and saves the partial results', async () => {
    server.script = [goesOn];
    server.afterCancel = [{ ...SOME_FAILED, status: 'cancelled', cancelled_at: 1_700_000_009 }];
    const client = run([], { answer: async () => 'c\n' });
    await watched(client);
    expect(await client.done).toBe(4);
    expect(server.count('POST', /cancel/)).toBe(1);
    expect(readFileSync(join(folder, 'input.output.jsonl'), 'utf8')).toBe(OUTPUT);
  });

  it.each([['l'], [''], [null]])(
    'leaves the batch running if the user answers %p',
    async (answer) => {
      server.script = [goesOn];
      const client = run([], { answer: async () => answer });
      await watched(client);
      expect(await client.done).toBe(130);
      expect(server.count('POST', /cancel/)).toBe(0);
    },
  );

  it('continues to watch if the user chooses so', async () => {
    server.script = [goesOn];
    const client = run([], {
      answer: async () => {
        server.script = [ALL_WELL];
        return 'w';
      },
    });
    await watched(client);
    expect(await client.done).toBe(0);
  });

  it('by SIGTERM leaves the batch running without a question', async () => {
    server.script = [goesOn];
    const client = run([], { answer: async () => 'c' });
    await until(() => server.count('GET', /batches\/batch_/) > 1, 10_000, 'the watch');
    client.signals.emit('SIGTERM', 'SIGTERM');
    expect(await client.done).toBe(130);
    expect(server.count('POST', /cancel/)).toBe(0);
  });

  it('saves the results of a batch that ended before the cancel arrived', async () => {
    server.script = [goesOn];
    server.react = ({ path }) => {
      if (!path.endsWith('/cancel')) return null;
      server.script = [ALL_WELL];
      return openaiError(409, 'Cannot cancel a batch with status completed.');
    };
    const client = run([], { answer: async () => 'c' });
    await watched(client);
    expect(await client.done).toBe(0);
  });

  it('during the upload creates no batch', async () => {
    server.react = ({ path }) => (path === '/v1/files' ? 'hang' : null);
    const client = run();
    await until(() => server.count('POST', /files/) === 1, 10_000, 'the upload');
    client.signals.emit('SIGINT', 'SIGINT');
    expect(await client.done).toBe(130);
    expect(client.err()).toContain('no batch was created');
    expect(server.count('POST', /batches/)).toBe(0);
  });

  it('works while a request hangs, and leaves no listener behind', async () => {
    server.script = [goesOn];
    server.react = ({ path }) =>
      path.includes('/batches/batch_') && server.count('GET', /batches\/batch_/) > 1
        ? 'hang'
        : null;
    const client = run();
    await watched(client);
    expect(await client.done).toBe(130);
    expect(client.signals.eventNames()).toEqual([]);
  });
});

describe('a server that fails during nightshift run', () => {
  it('is polled again with a message while it is away, and the watch continues', async () => {
    server.script = [IN_PROGRESS, ALL_WELL];
    let away = 4;
    server.react = ({ path }) => {
      if (!path.includes('/batches/batch_') || away-- <= 0) return null;
      return away % 2 === 0 ? 'break' : openaiError(503, 'overloaded');
    };
    const client = run();
    expect(await client.done).toBe(0);
    expect(client.err().match(/the batch is safe on the server/g)).toHaveLength(1);
    expect(client.err()).toContain('the server answers again');
  });

  it('ends the watch with exit status 6 after --patience, with commands to continue', async () => {
    server.react = ({ path }) => (path.includes('/batches/batch_') ? 'break' : null);
    const client = run(['--patience', '100ms']);
    expect(await client.done).toBe(6);
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID}`);
  });

  it('gets the upload again if the connection breaks', async () => {
    server.script = [ALL_WELL];
    let breaks = 1;
    server.react = ({ path }) => (path === '/v1/files' && breaks-- > 0 ? 'break' : null);
    const client = run();
    expect(await client.done).toBe(0);
    const uploads = server.seen.filter(({ path }) => path === '/v1/files');
    expect(uploads).toHaveLength(2);
    const keys = new Set(uploads.map(({ headers }) => headers['idempotency-key']));
    expect(keys.size).toBe(1);
  });

  it('is named with advice if nothing listens there', async () => {
    await server.close();
    const client = run();
    expect(await client.done).toBe(6);
    expect(client.err()).toMatch(/cannot reach http:.* \(connect ECONNREFUSED.*nightshift dev/);
    server = await startFakeServer();
  });

  it.each([
    [{}, 'requires an API key'],
    [{ OPENAI_API_KEY: 'sk-wrong' }, 'refuses the API key'],
  ])('is reported with advice about keys if it answers 401 (%p)', async (env, words) => {
    server.react = () => openaiError(401, 'Incorrect API key provided.');
    const client = run([], { env });
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(words);
    expect(server.count('POST', /files/)).toBe(0);
  });

  it('is quoted if it refuses the file', async () => {
    server.react = ({ path }) =>
      path === '/v1/files' ? openaiError(400, 'Invalid file format: .jsonl only.') : null;
    const client = run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('refused with 400: Invalid file format: .jsonl only');
  });

  it('is recognized by its pages if it is an ordinary web server', async () => {
    server.react = ({ path }) =>
      path === '/v1/batches' ? { status: 200, raw: '<html></html>' } : null;
    const client = run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('usually ends in /v1');
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
    if (text === null) rmSync(input);
    else writeFileSync(input, text);
    const client = run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(words);
    expect(server.seen).toEqual([]);
  });

  it('may begin with a byte order mark and blank lines', async () => {
    writeFileSync(input, `\ufeff\r\n${LINE}`);
    server.script = [ALL_WELL];
    expect(await run().done).toBe(0);
  });

  it('is not checked locally if --endpoint is given', async () => {
    writeFileSync(input, 'not JSON at all\n');
    server.script = [ALL_WELL];
    expect(await run(['--endpoint', '/v1/responses']).done).toBe(0);
    expect(server.seen.at(2)?.body).toContain('"/v1/responses"');
  });
});
