import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import { mountSmallDisk } from './small-disk';
import type { TestStack } from '../support/stack';
import {
  chatLines,
  resultLines,
  STACK_START_MS,
  startStack,
  submit,
  untilTerminal,
} from '../support/stack';
import { until } from '../support/until';
import { STORE, titleOnFilesystem } from '../support/variant';
import { runReconcile } from './reconcile-command';

const MIB = 1024 * 1024;
const LINES = 300;
const ANSWER_BYTES = 8 * 1024;
/** The size of journal and seals of one batch. Its results take about half of that in addition. */
const JOURNAL_BYTES = 2 * LINES * (ANSWER_BYTES + 512);
const LATENCY_MS = 50;
const FINALIZE_WINDOW_MS = 15_000;
const TEST_MS = 120_000;

/** Journals stay for an hour after the end of their batch. This is twice the space that all tests here need. */
const disk = STORE === 'filesystem' ? mountSmallDisk(96 * MIB) : null;
let backend: RecordingBackend;
let stack: TestStack;
let temporal: Client;

const TITLE = titleOnFilesystem(
  'a full disk under the object store',
  'the disk of the store belongs to its server',
);

(disk === null ? describe.skip : describe)(TITLE, () => {
  const full = disk as NonNullable<typeof disk>;

  beforeAll(async () => {
    backend = await startRecordingBackend(LATENCY_MS);
    backend.judge = () => ({
      status: 200,
      body: JSON.stringify({ model: 'm', text: 'x'.repeat(ANSWER_BYTES) }),
    });
    stack = await startStack({
      config: {
        object_store: { type: 'filesystem', path: join(full.path, 'store') },
        global_inference_gateway: { url: backend.url, request_timeout: '10s' },
        batch: { cancel_grace: '2s', finalize_window: `${FINALIZE_WINDOW_MS}ms` },
        concurrency: { global: 20, per_model: 20 },
        retention: { scratch: '1h' },
      },
    });
    temporal = new Client({
      connection: await Connection.connect({ address: stack.temporalAddress }),
    });
  }, STACK_START_MS);
  afterAll(async () => {
    await temporal?.connection.close();
    await stack?.stop();
    stack?.remove();
    await backend?.close();
    full.unmount();
  }, 60_000);
  beforeEach(() => void (backend.seen.length = 0));
  afterEach(() => full.free());

  it('makes the API refuse an upload with 503, leave nothing behind, and accept it later', async () => {
    const upload = async (): Promise<Response> => {
      const form = new FormData();
      form.set('purpose', 'batch');
      form.set('file', new Blob([chatLines(5_000)]), 'input.jsonl');
      return fetch(`${stack.baseUrl}/files`, { method: 'POST', body: form });
    };
    const before = await countFiles();
    full.fill();
    const refused = await upload();
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused.json()).toEqual({
      error: { message: expect.any(String), type: 'server_error', param: null, code: null },
    });
    expect(readdirSync(join(full.path, 'store', 'tmp'))).toEqual([]);
    expect(await countFiles()).toBe(before);
    expect(await stack.metric('api', 'file_storage_operations_total')).toContainEqual(
      expect.stringMatching(/operation="store",component="apiserver",status="exhausted".* [1-9]/),
    );
    full.free();
    expect((await upload()).status).toBe(200);
  });

  it(
    'keeps a batch validating, with the reason, until there is space for its plan',
    async () => {
      const file = await stack.client.files.create({
        file: new File([chatLines(LINES)], 'input.jsonl'),
        purpose: 'batch',
      });
      full.fill();
      const { id } = await stack.client.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      });
      await until(async () => (await lastFailure(id)).includes('ENOSPC'), 20_000, 'the reason');
      expect((await stack.client.batches.retrieve(id)).status).toBe('validating');
      expect(backend.seen).toEqual([]);
      full.free();
      await expectWhole(id, 'completed');
    },
    TEST_MS,
  );

  it(
    'pauses a running batch, which loses no answer and sends no line twice',
    async () => {
      const { id } = await startedBatch();
      full.fill();
      await untilQuiet();
      expect(stack.logOf('worker')).toContain('journal segment abandoned');
      expect(await stack.metric('worker', 'file_storage_operations_total')).toContainEqual(
        expect.stringMatching(/operation="store",component="processor",status="retry".* [1-9]/),
      );
      expect(await heartbeats(id)).toContainEqual(
        expect.objectContaining({ waitsFor: expect.stringContaining('journal') }),
      );
      expect((await stack.client.batches.retrieve(id)).status).toBe('in_progress');
      full.free();
      await expectWhole(id, 'completed');
    },
    TEST_MS,
  );

  it(
    'delays a cancel, and answers in memory are delivered when there is space',
    async () => {
      const { id } = await startedBatch();
      full.fill();
      await untilQuiet();
      const sent = backend.seen.length;
      await stack.client.batches.cancel(id);
      full.free();
      const { output } = await expectWhole(id, 'cancelled');
      expect(backend.seen.length).toBe(sent);
      expect(output).toBe(sent);
    },
    TEST_MS,
  );

  it(
    'keeps a batch finalizing until there is space for its files',
    async () => {
      full.fill(JOURNAL_BYTES + MIB);
      const { id } = await submit(stack.client, chatLines(LINES));
      await until(async () => (await lastFailure(id)).includes('ENOSPC'), 60_000, 'the reason');
      expect((await stack.client.batches.retrieve(id)).status).toBe('finalizing');
      full.free();
      await expectWhole(id, 'completed');
    },
    TEST_MS,
  );

  it(
    'keeps a batch finalizing beyond its finalization window if nothing asked it to stop',
    async () => {
      full.fill(JOURNAL_BYTES + MIB);
      const { id } = await submit(stack.client, chatLines(LINES));
      await until(async () => (await statusOf(id)) === 'finalizing', 60_000, 'finalizing');
      const overMs = Date.now() + FINALIZE_WINDOW_MS;
      await until(() => Date.now() > overMs, 2 * FINALIZE_WINDOW_MS, 'the end of the window');
      expect(await lastFailure(id)).toContain('ENOSPC');
      expect(await statusOf(id)).toBe('finalizing');
      full.free();
      await expectWhole(id, 'completed');
    },
    TEST_MS,
  );

  it(
    'ends a cancelled batch without files after the finalization window; they are delivered later',
    async () => {
      full.fill(JOURNAL_BYTES + MIB);
      const { id } = await submit(stack.client, chatLines(LINES));
      await until(async () => (await statusOf(id)) === 'finalizing', 60_000, 'finalizing');
      expect((await stack.client.batches.cancel(id)).status).toBe('cancelling');
      const ended = await untilTerminal(stack.client, id);
      expect(ended).toMatchObject({
        ...{ status: 'cancelled', output_file_id: null, error_file_id: null },
        request_counts: { total: LINES, completed: LINES, failed: 0 },
      });
      expect(ended.errors?.data?.[0]?.code ?? null).toBeNull();
      expect(existsSync(join(full.path, 'store', 'objects', 'batches', id))).toBe(true);
      full.free();
      expect(await runReconcile(stack.configFile, '--finalize', id)).toMatchObject({ exitCode: 0 });
      const after = await stack.client.batches.retrieve(id);
      expect(after).toEqual({
        ...ended,
        output_file_id: expect.stringMatching(/^file-/),
        usage: expect.anything(),
        model: 'm',
      });
      expect(await resultLines(stack.client, after.output_file_id)).toHaveLength(LINES);
      expect(backend.seen).toHaveLength(LINES);
    },
    TEST_MS,
  );

  async function startedBatch(): Promise<{ id: string }> {
    const batch = await submit(stack.client, chatLines(LINES));
    await until(() => backend.seen.length >= LINES / 4, 60_000, 'a quarter of the batch');
    return batch;
  }

  /** Resolves when nothing is in flight and nothing more is sent. */
  async function untilQuiet(): Promise<void> {
    let sent = -1;
    const isQuiet = (): boolean => {
      const before = sent;
      sent = backend.seen.length;
      return backend.inFlight() === 0 && before === sent;
    };
    await until(isQuiet, 20_000, 'the last request', 1_000);
    expect(sent).toBeLessThan(LINES);
  }

  /** Every line is once in one of the files, and was sent at most once. */
  async function expectWhole(id: string, status: string): Promise<{ output: number }> {
    const batch = await untilTerminal(stack.client, id);
    expect(batch.status).toBe(status);
    const output = await resultLines(stack.client, batch.output_file_id);
    const errors = await resultLines(stack.client, batch.error_file_id);
    const ids = [...output, ...errors].map((line) => line.custom_id);
    expect(ids.sort()).toEqual(Array.from({ length: LINES }, (_, i) => `c-${i}`).sort());
    expect(batch.request_counts).toEqual({ total: LINES, completed: output.length, failed: 0 });
    expect(new Set(backend.seen.map(({ requestId }) => requestId)).size).toBe(backend.seen.length);
    return { output: output.length };
  }

  async function countFiles(): Promise<number> {
    const ids: string[] = [];
    for await (const { id } of stack.client.files.list()) ids.push(id);
    return ids.length;
  }

  async function statusOf(id: string): Promise<string> {
    return (await stack.client.batches.retrieve(id)).status;
  }

  /** The last failures of pending activities, as operators see them. */
  async function lastFailure(id: string): Promise<string> {
    const { raw } = await temporal.workflow.getHandle(id).describe();
    return JSON.stringify(raw.pendingActivities?.map(({ lastFailure: failure }) => failure) ?? []);
  }

  async function heartbeats(id: string): Promise<unknown[]> {
    const { raw } = await temporal.workflow.getHandle(id).describe();
    return (raw.pendingActivities ?? []).flatMap(({ heartbeatDetails }) =>
      (heartbeatDetails?.payloads ?? []).map(
        ({ data }) => JSON.parse(Buffer.from(data ?? []).toString()) as unknown,
      ),
    );
  }
});
