import { getEventListeners } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBatchService } from '../../../cli/batches/batch-service';
import { until } from '../../support/until';
import { runClient, type ClientRun, type RunSettings } from './client-run';
import {
  BATCH_ID,
  batchObject,
  openaiError,
  startFakeServer,
  type FakeServer,
} from './fake-server';

const ENDED = {
  status: 'completed',
  completed_at: 1_700_000_100,
  request_counts: { total: 1_200, completed: 1_200, failed: 0 },
  output_file_id: 'file-output',
  usage: {
    input_tokens: 12_345,
    input_tokens_details: { cached_tokens: 1_000 },
    output_tokens: 678,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 13_023,
  },
};

let server: FakeServer;
let folder: string;

beforeEach(async () => {
  server = await startFakeServer();
  folder = mkdtempSync(join(tmpdir(), 'nightshift-cli-'));
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function nightshift(args: readonly string[], settings: RunSettings = {}): ClientRun {
  return runClient(args, { ...settings, env: { OPENAI_BASE_URL: server.url, ...settings.env } });
}

describe('nightshift submit', () => {
  it('prints the id alone on stdout', async () => {
    const input = join(folder, 'in.jsonl');
    writeFileSync(input, '{"url":"/v1/responses"}\n');
    const client = nightshift(['submit', input]);
    expect(await client.done).toBe(0);
    expect(client.out()).toBe(`${BATCH_ID}\n`);
  });
});

describe('nightshift list', () => {
  it('shows a table of equal columns and says that there is more', async () => {
    const client = nightshift(['list', '--limit', '3']);
    expect(await client.done).toBe(0);
    const lines = client.out().trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(new Set(lines.map((line) => line.search(/status|validating/))).size).toBe(1);
    expect(client.err()).toContain('there are more');
  });

  it('pages on for more than one page and gives JSON to scripts', async () => {
    const client = nightshift(['list', '--limit', '150', '--json']);
    expect(await client.done).toBe(0);
    expect(JSON.parse(client.out())).toHaveLength(150);
    expect(server.count('GET', /after=batch_99/)).toBe(1);
  });

  it.each(['0', 'x', '-1'])('refuses --limit %s', async (limit) => {
    const client = nightshift(['list', '--limit', limit]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('expected a whole number from 1');
  });
});

describe('nightshift show', () => {
  it('shows all facts: counts, tokens, times, files, metadata', async () => {
    server.script = [{ ...ENDED, metadata: { team: 'search\u001b[2J' } }];
    const client = nightshift(['show', BATCH_ID]);
    expect(await client.done).toBe(0);
    expect(client.out()).toMatch(/requests +1,200: 1,200 completed, 0 failed/);
    expect(client.out()).toMatch(/tokens +12,345 in \(1,000 cached\), 678 out/);
    expect(client.out()).toMatch(/completed +2023-11-\d\d \d\d:\d\d:\d\d \(\d+ d ago\)/);
    expect(client.out()).toMatch(/took +1 min 40 s/);
    expect(client.out()).toMatch(/output file +file-output/);
    expect(client.out()).toMatch(/metadata +team=search\?\[2J/);
  });

  it('shows why a file was rejected, and still exits 0: the batch was shown', async () => {
    const data = [{ code: 'invalid_url', message: 'wrong', param: 'url', line: 12 }];
    server.script = [{ status: 'failed', failed_at: 1_700_000_002, errors: { data } }];
    const client = nightshift(['show', BATCH_ID]);
    expect(await client.done).toBe(0);
    expect(client.out()).toMatch(/line 12 +invalid_url +url +wrong/);
  });

  it('gives the very object to scripts', async () => {
    const client = nightshift(['show', BATCH_ID, '--json']);
    expect(await client.done).toBe(0);
    expect(JSON.parse(client.out())).toEqual(batchObject());
  });

  it('says what the server says of an unknown batch', async () => {
    const client = nightshift(['show', 'batch_x']);
    expect(await client.done).toBe(1);
    expect(client.err()).toBe("nightshift: No batch found with id 'batch_x'\n");
  });

  it('points at the base URL where there is no such API', async () => {
    server.react = () => ({ status: 404, body: { detail: 'Not Found' } });
    const client = nightshift(['show', BATCH_ID]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('usually ends in /v1');
  });
});

describe('nightshift watch', () => {
  it('ends with the batch, its exit status, and the way to the results', async () => {
    server.script = [{ status: 'in_progress' }, { status: 'finalizing' }, ENDED];
    const client = nightshift(['watch', BATCH_ID, '--tenant', "o'neill"]);
    expect(await client.done).toBe(0);
    expect(client.err()).toContain(`nightshift results ${BATCH_ID} --tenant 'o'\\''neill'`);
  });

  it('exits 3 for a batch in which requests failed', async () => {
    server.script = [{ ...ENDED, request_counts: { total: 2, completed: 1, failed: 1 } }];
    expect(await nightshift(['watch', BATCH_ID]).done).toBe(3);
  });

  it('lets go at Ctrl-C without a terminal', async () => {
    server.script = [{ status: 'in_progress' }];
    const client = nightshift(['watch', BATCH_ID]);
    await until(() => server.seen.length > 2, 10_000, 'the watch');
    client.signals.emit('SIGINT', 'SIGINT');
    expect(await client.done).toBe(130);
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID}`);
  });
});

describe('the service', () => {
  it('leaves no listener on a signal, however often a batch is looked at', async () => {
    const connection = {
      baseUrl: server.url,
      apiKey: null,
      headers: {},
      repeated: '',
      isChosen: true,
      env: {},
    };
    const service = createBatchService(connection);
    const { signal } = new AbortController();
    for (let look = 0; look < 3; look++) await service.retrieve(BATCH_ID, { signal, retries: 0 });
    await service.list(1, signal);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('nightshift cancel', () => {
  it('says what the batch is now', async () => {
    const client = nightshift(['cancel', BATCH_ID]);
    expect(await client.done).toBe(0);
    expect(client.out()).toBe(`${BATCH_ID} is cancelling\n`);
  });

  it('says how to see it end, with the same tenant', async () => {
    const client = nightshift(['cancel', BATCH_ID, '--tenant', 'ann']);
    await client.done;
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID} --tenant ann\n`);
  });

  it('is refused for a batch that has ended', async () => {
    server.react = () => openaiError(409, 'Cannot cancel a batch with status completed.');
    const client = nightshift(['cancel', BATCH_ID]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('Cannot cancel a batch with status completed');
  });
});

describe('nightshift results', () => {
  it('writes to the file that was named', async () => {
    server.script = [ENDED];
    server.files.set('file-output', '{"a":"ä"}\n');
    const target = join(folder, 'answers.jsonl');
    const errors = join(folder, 'errors.jsonl');
    const client = nightshift(['results', BATCH_ID, '-o', target, '--errors', errors]);
    expect(await client.done).toBe(0);
    expect(readFileSync(target, 'utf8')).toBe('{"a":"ä"}\n');
  });

  it('refuses a batch that still runs', async () => {
    const client = nightshift(['results', BATCH_ID, '-o', join(folder, 'x')]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(
      `is validating and has no results yet: wait for its end with nightshift watch`,
    );
  });

  it('says that a file is gone', async () => {
    server.script = [ENDED];
    const client = nightshift(['results', BATCH_ID, '-o', join(folder, 'x')]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('No such File object');
  });

  it('does not mix JSON and answers', async () => {
    const client = nightshift(['results', BATCH_ID, '-o', '-', '--json']);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('would mix');
    expect(server.seen).toEqual([]);
  });
});

describe('usage', () => {
  it.each([
    [['run'], "missing required argument 'input.jsonl'"],
    [['run', 'x', '--metadata', 'novalue'], 'expected key=value'],
    [['watch', 'x', '--patience', '5'], 'expected a duration with its unit'],
    [['show', 'x', '--header', 'nonsense'], 'expected "Name: value"'],
    [['show', 'x', '--base-url', 'localhost:8000'], 'is not a base URL'],
    [['show', 'x', '--nonsense'], "unknown option '--nonsense'"],
  ])('%p exits 1 and says why', async (args, words) => {
    const client = nightshift(args);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(words);
  });

  it.each(['run', 'submit', 'list', 'show', 'watch', 'cancel', 'results'])(
    '%s --help tells flags, exit status and examples',
    async (name) => {
      const client = nightshift([name, '--help']);
      expect(await client.done).toBe(0);
      for (const words of ['--base-url', 'OPENAI_API_KEY', 'Exit status:', 'Examples:']) {
        expect(client.out()).toContain(words);
      }
    },
  );
});
