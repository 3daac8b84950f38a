import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Batch } from 'openai/resources/batches';
import { reportOf } from '../../cli/demo-report';
import { createProgress } from '../../cli/progress';
import { packageRoot } from '../../platform/package-root';

describe('the report of a demo', () => {
  test('counts, adds up tokens, shows answers and groups what failed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'nightshift-report-'));
    const lines = (file: string, values: unknown[]): string => {
      writeFileSync(
        join(folder, file),
        values.map((value) => `${JSON.stringify(value)}\n`).join(''),
      );
      return join(folder, file);
    };
    const answer = (custom_id: string, content: string) => ({
      custom_id,
      error: null,
      response: {
        status_code: 200,
        body: {
          choices: [{ message: { content } }],
          usage: {
            prompt_tokens: 1_000,
            completion_tokens: 20,
            prompt_tokens_details: { cached_tokens: 7 },
          },
        },
      },
    });
    const refused = {
      custom_id: 'c',
      error: null,
      response: { status_code: 400, body: { error: { message: 'no' } } },
    };
    const lost = {
      custom_id: 'e',
      response: null,
      error: { code: 'batch_expired', message: 'too late' },
    };
    const report = await reportOf({
      batch: { request_counts: { total: 5, completed: 2, failed: 3 } } as Batch,
      tookMs: 2_000,
      outputFile: lines('out', [answer('a', 'first\nanswer'), answer('b', 'second')]),
      errorFile: lines('err', [refused, { ...refused, custom_id: 'd' }, lost]),
    });
    expect(report).toContain('5 requests: 2 completed, 3 failed, in 2.0 s');
    expect(report).toContain('tokens: 2,000 in (14 cached), 40 out');
    expect(report).toMatch(/^ {2}a {2}first answer$/m);
    expect(report).toMatch(/^ {2}2 {2}HTTP 400: no\n {2}1 {2}batch_expired: too late$/m);
    rmSync(folder, { recursive: true });
  });
});

describe('the progress of a demo', () => {
  const step = (completed: number) => ({ status: 'in_progress', total: 100, completed, failed: 0 });

  test('is a bar that redraws itself on a terminal', () => {
    const written: string[] = [];
    const progress = createProgress({ isTTY: true, write: (text) => written.push(text) }, 0);
    progress.show(step(0), 0);
    progress.show(step(50), 1_500);
    progress.end();
    expect(written[1]).toContain(
      '[################................]  50%  50 of 100  in_progress  1.5 s',
    );
    expect(written[1]?.startsWith('\r')).toBe(true);
    expect(written.at(-1)).toBe('\n');
  });

  test('is a line for every tenth elsewhere', () => {
    const written: string[] = [];
    const progress = createProgress({ write: (text) => written.push(text) }, 0);
    for (let completed = 0; completed <= 100; completed++) progress.show(step(completed), 0);
    expect(written).toHaveLength(11);
    expect(written.join('')).not.toContain('\r');
  });
});

describe('the example of the demo', () => {
  test('is 200 requests of one endpoint and two models, each with an id of its own', () => {
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
});
