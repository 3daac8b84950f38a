import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runClient, type ClientRun, type RunSettings } from './client-run';
import { startFakeServer, type FakeServer } from './fake-server';

export const LINE =
  '{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m"}}\n';
export const OUTPUT =
  '{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"r","body":{}},"error":null}\n';
export const ERRORS = [
  '{"id":"2","custom_id":"b","response":{"status_code":429,"request_id":"r","body":{"error":{"message":"too many","code":"rate_limit_exceeded"}}},"error":null}',
  '{"id":"3","custom_id":"c","response":null,"error":{"code":"request_timeout","message":"no answer"}}',
  '{"id":"4","custom_id":"d","response":null,"error":{"code":"request_timeout","message":"no answer"}}',
  '',
].join('\n');
export const IN_PROGRESS = {
  status: 'in_progress',
  request_counts: { total: 4, completed: 1, failed: 0 },
};
export const ALL_WELL = {
  status: 'completed',
  completed_at: 1_700_000_100,
  request_counts: { total: 1, completed: 1, failed: 0 },
  output_file_id: 'file-output',
};
export const SOME_FAILED = {
  ...ALL_WELL,
  request_counts: { total: 4, completed: 1, failed: 3 },
  error_file_id: 'file-errors',
};

/** A fake server and an input file of one request, new for each test. */
export interface RunFixture {
  server: FakeServer;
  /** Folder of the input file. */
  folder: string;
  input: string;
  /** Runs `nightshift run` on the input file. */
  run(args?: readonly string[], settings?: RunSettings): ClientRun;
}

/** Registers the hooks that start and remove the fixture. */
export function useRunFixture(): RunFixture {
  const fixture = {
    run: (args: readonly string[] = [], settings: RunSettings = {}) =>
      runClient(['run', fixture.input, '--base-url', fixture.server.url, ...args], settings),
  } as RunFixture;
  beforeEach(async () => {
    fixture.server = await startFakeServer();
    fixture.server.files.set('file-output', OUTPUT).set('file-errors', ERRORS);
    fixture.folder = mkdtempSync(join(tmpdir(), 'nightshift-cli-'));
    fixture.input = join(fixture.folder, 'input.jsonl');
    writeFileSync(fixture.input, LINE);
  });
  afterEach(async () => {
    await fixture.server.close();
    rmSync(fixture.folder, { recursive: true, force: true });
  });
  return fixture;
}
