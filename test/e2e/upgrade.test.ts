import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type OpenAI from 'openai';
import { ensureBuilt } from '../../cli/prepare.js';
import { buildRelease, hasCommit } from '../support/earlier-release';
import { openInstallation, type Installation } from '../support/installation';
import { withDatabase, type TestDatabase } from '../support/postgres';
import { startRecordingBackend, type RecordingBackend } from '../support/recording-backend';
import { chatLines, resultLines, submit, untilTerminal } from '../support/stack';
import { startTemporal, TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';
import { STORE, titleOnFilesystem } from '../support/variant';

/**
 * The release that this one is upgraded from and rolled back to. Move it when a release is made. It may be
 * any commit that supports the same upgrade; a clone without it skips the test.
 */
const PREVIOUS = '4872b0bfda77a97b7065eb60e3faec15db8c4078';
/** Patches that it does not know. */
const NEW_PATCHES = ['small-batch-at-once', 'steps-write-phases'];
const LINES = 40;
const ANSWERED = 15;

const isPossible = hasCommit(PREVIOUS) && STORE === 'filesystem';
const describeIfPossible = isPossible ? describe : describe.skip;
const TITLE = titleOnFilesystem('open batches', 'the earlier release has no S3 store');
let database: TestDatabase;
let backend: RecordingBackend;
let installation: Installation;
let previous: string;
const folder = mkdtempSync(join(tmpdir(), 'nightshift-upgrade-'));
/** Models whose batch may not get beyond its first answers. */
const held = new Set<string>();

/** Requests of the batch with this model. */
const sent = (model: string) => backend.seen.filter(({ body }) => body.includes(`"${model}"`));

describeIfPossible(TITLE, () => {
  beforeAll(async () => {
    ensureBuilt();
    previous = buildRelease(PREVIOUS);
    backend = await startRecordingBackend(20);
    backend.hold = (request) => [...held].some((model) => sent(model).indexOf(request) >= ANSWERED);
    database = await withDatabase();
    await database.pool.query('drop schema public cascade; create schema public');
    const { address, namespace } = await startTemporal();
    installation = openInstallation({
      temporal: { address, namespace },
      postgres: { url: database.url },
      object_store: { type: 'filesystem', path: join(folder, 'store') },
      global_inference_gateway: { url: backend.url, request_timeout: '60s' },
      concurrency: { per_model: 10 },
      worker: { drain_budget: '1s', heartbeat_timeout: '3s' },
    });
  }, TEMPORAL_START_MS);
  afterAll(async () => {
    await installation?.close();
    await backend?.close();
    await database?.close();
    for (const path of [folder, previous]) rmSync(path, { recursive: true, force: true });
  }, 60_000);

  it('go on through an upgrade and a rollback, with processes of both releases side by side', async () => {
    const migrate = ['migrate', '--skip-namespace'];
    expect(await installation.run(migrate, previous)).toMatchObject({ exitCode: 0 });
    const oldApi = await installation.startApi(previous);
    const oldWorker = await installation.startWorker(previous);
    const up = await submitHeld(oldApi.client, 'up');

    // The upgrade: check, migrate, workers, API.
    const replay = await installation.run(['replay', '--open']);
    expect(replay).toMatchObject({ exitCode: 0 });
    expect(replay.stdout).toMatch(new RegExp(`^replays +${up.id} `, 'm'));
    expect(await installation.run(migrate)).toMatchObject({ exitCode: 0 });
    const newWorker = await startNewWorker();
    const newApi = await installation.startApi();
    await oldWorker.stop();
    held.delete('up');
    await expectCompleted(newApi.client, up, 'up');
    expect(await oldApi.client.batches.retrieve(up.id)).toMatchObject({ status: 'completed' });

    // Both releases at once.
    const oldWorkerAgain = await installation.startWorker(previous);
    const both = ['both-1', 'both-2', 'both-3'];
    const clients = [newApi.client, oldApi.client, newApi.client];
    const batches = await Promise.all(both.map((m, i) => submitBatch(clients[i], m)));
    for (const [i, model] of both.entries()) {
      await expectCompleted(oldApi.client, batches[i] as OpenAI.Batches.Batch, model);
    }

    // The rollback, on the schema of the new release.
    await oldWorkerAgain.stop();
    const down = await submitHeld(newApi.client, 'down');
    expect(await installation.run(migrate, previous)).toMatchObject({ exitCode: 0 });
    await oldApi.stop();
    const rolledBackApi = await installation.startApi(previous);
    await installation.startWorker(previous);
    await newWorker.stop();
    await newApi.stop();
    held.delete('down');
    await expectCompleted(rolledBackApi.client, down, 'down');
  }, 180_000);
});

/** A worker that lets the earlier release take over again (docs/upgrading.md#patches). */
async function startNewWorker() {
  const { settings } = installation;
  const { temporal } = settings;
  settings['temporal'] = { ...(temporal as object), inactive_patches: NEW_PATCHES };
  try {
    return await installation.startWorker();
  } finally {
    settings['temporal'] = temporal;
  }
}

function submitBatch(client: OpenAI | undefined, model: string): Promise<OpenAI.Batches.Batch> {
  return submit(
    client as OpenAI,
    chatLines(LINES, () => model),
  );
}

/** Creates a batch and waits until its first requests are answered and the next ones are in flight. */
async function submitHeld(client: OpenAI, model: string): Promise<OpenAI.Batches.Batch> {
  held.add(model);
  const batch = await submitBatch(client, model);
  const isHeld = () => sent(model).length > ANSWERED;
  await until(isHeld, 30_000, `requests of ${model} in flight`, 20);
  await until(() => answered(model).length === ANSWERED, 30_000, `answers of ${model}`, 20);
  return batch;
}

const answered = (model: string) => sent(model).filter((request) => request.answered);

/** Every line is in the output once, and no request was sent again after it was answered. */
async function expectCompleted(
  client: OpenAI,
  { id }: OpenAI.Batches.Batch,
  model: string,
): Promise<void> {
  const batch = await untilTerminal(client, id);
  expect(batch).toMatchObject({
    status: 'completed',
    request_counts: { total: LINES, completed: LINES, failed: 0 },
  });
  const lines = await resultLines(client, batch.output_file_id);
  const ids = lines.map(({ custom_id }) => custom_id);
  expect(new Set(ids).size).toBe(LINES);
  expect(ids).toHaveLength(LINES);
  const answers = answered(model).map(({ requestId }) => requestId);
  expect(new Set(answers).size).toBe(answers.length);
}
