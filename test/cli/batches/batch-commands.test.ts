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
  it('prints only the batch id on stdout', async () => {
    const input = join(folder, 'in.jsonl');
    writeFileSync(input, '{"url":"/v1/responses"}\n');
    const client = nightshift(['submit', input]);
    expect(await client.done).toBe(0);
    expect(client.out()).toBe(`${BATCH_ID}\n`);
  });
});

describe('nightshift list', () => {
  it('shows a table with aligned columns, and says if there are more batches', async () => {
    const client = nightshift(['list', '--limit', '3']);
    expect(await client.done).toBe(0);
    const lines = client.out().trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(new Set(lines.map((line) => line.search(/status|validating/))).size).toBe(1);
    expect(client.err()).toContain('there are more');
  });

  it('reads several pages if needed, and prints JSON with --json', async () => {
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
  it('shows counts, tokens, times, files and metadata', async () => {
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

  it('shows why an input file was rejected, with exit status 0', async () => {
    const data = [{ code: 'invalid_url', message: 'wrong', param: 'url', line: 12 }];
    server.script = [{ status: 'failed', failed_at: 1_700_000_002, errors: { data } }];
    const client = nightshift(['show', BATCH_ID]);
    expect(await client.done).toBe(0);
    expect(client.out()).toMatch(/line 12 +invalid_url +url +wrong/);
  });

  it('prints the batch object unchanged with --json', async () => {
    const client = nightshift(['show', BATCH_ID, '--json']);
    expect(await client.done).toBe(0);
    expect(JSON.parse(client.out())).toEqual(batchObject());
  });

  it("passes on the server's message about an unknown batch", async () => {
    const client = nightshift(['show', 'batch_x']);
    expect(await client.done).toBe(1);
    expect(client.err()).toBe("nightshift: No batch found with id 'batch_x'\n");
  });

  it('suggests to check the base URL if the server has no Batches API', async () => {
    server.react = () => ({ status: 404, body: { detail: 'Not Found' } });
    const client = nightshift(['show', BATCH_ID]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('usually ends in /v1');
  });
});

describe('nightshift watch', () => {
  it('ends with the batch, with its exit status and the command that fetches the results', async () => {
    server.script = [{ status: 'in_progress' }, { status: 'finalizing' }, ENDED];
    const client = nightshift(['watch', BATCH_ID, '--tenant', "o'neill"]);
    expect(await client.done).toBe(0);
    expect(client.err()).toContain(`nightshift results ${BATCH_ID} --tenant 'o'\\''neill'`);
  });

  it('exits with 3 if requests of a completed batch failed', async () => {
    server.script = [{ ...ENDED, request_counts: { total: 2, completed: 1, failed: 1 } }];
    expect(await nightshift(['watch', BATCH_ID]).done).toBe(3);
  });

  it('leaves the batch running at Ctrl-C without a terminal', async () => {
    server.script = [{ status: 'in_progress' }];
    const client = nightshift(['watch', BATCH_ID]);
    await until(() => server.seen.length > 2, 10_000, 'the watch');
    client.signals.emit('SIGINT', 'SIGINT');
    expect(await client.done).toBe(130);
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID}`);
  });
});

describe('the batch service', () => {
  it('leaves no listener on the abort signal, however often a batch is retrieved', async () => {
    const connection = {
      baseUrl: server.url,
      apiKey: null,
      headers: {},
      followUpFlags: '',
      isNamedByUser: true,
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
  it('prints the new status of the batch', async () => {
    const client = nightshift(['cancel', BATCH_ID]);
    expect(await client.done).toBe(0);
    expect(client.out()).toBe(`${BATCH_ID} is cancelling\n`);
  });

  it('suggests the command that watches the end, with the same tenant', async () => {
    const client = nightshift(['cancel', BATCH_ID, '--tenant', 'ann']);
    await client.done;
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID} --tenant ann\n`);
  });

  it('fails for a batch that has ended', async () => {
    server.react = () => openaiError(409, 'Cannot cancel a batch with status completed.');
    const client = nightshift(['cancel', BATCH_ID]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('Cannot cancel a batch with status completed');
  });
});

describe('nightshift results', () => {
  it('writes to the file that -o names', async () => {
    server.script = [ENDED];
    server.files.set('file-output', '{"a":"ä"}\n');
    const target = join(folder, 'answers.jsonl');
    const errors = join(folder, 'errors.jsonl');
    const client = nightshift(['results', BATCH_ID, '-o', target, '--errors', errors]);
    expect(await client.done).toBe(0);
    expect(readFileSync(target, 'utf8')).toBe('{"a":"ä"}\n');
  });

  it('refuses a batch that is still running', async () => {
    const client = nightshift(['results', BATCH_ID, '-o', join(folder, 'x')]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(
      `is validating and has no results yet: wait for its end with nightshift watch`,
    );
  });

  it('reports a result file that was deleted', async () => {
    server.script = [ENDED];
    const client = nightshift(['results', BATCH_ID, '-o', join(folder, 'x')]);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('No such File object');
  });

  it('refuses to mix JSON and answers on stdout', async () => {
    const client = nightshift(['results', BATCH_ID, '-o', '-', '--json']);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('would mix');
    expect(server.seen).toEqual([]);
  });
});

describe('the batch commands', () => {
  it.each([
    [['run'], "missing required argument 'input.jsonl'"],
    [['run', 'x', '--metadata', 'novalue'], 'expected key=value'],
    [['watch', 'x', '--patience', '5'], 'expected a duration with its unit'],
    [['show', 'x', '--header', 'nonsense'], 'expected "Name: value"'],
    [['show', 'x', '--base-url', 'localhost:8000'], 'is not a base URL'],
    [['show', 'x', '--nonsense'], "unknown option '--nonsense'"],
  ])('exit with 1 and an explanation for %p', async (args, words) => {
    const client = nightshift(args);
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(words);
  });

  it.each(['run', 'submit', 'list', 'show', 'watch', 'cancel', 'results'])(
    'list flags, exit statuses and examples in nightshift %s --help',
    async (name) => {
      const client = nightshift([name, '--help']);
      expect(await client.done).toBe(0);
      for (const words of ['--base-url', 'OPENAI_API_KEY', 'Exit status:', 'Examples:']) {
        expect(client.out()).toContain(words);
      }
    },
  );
});
