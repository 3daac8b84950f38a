import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createBatchWorkflows } from '../../client/batch-workflows';
import { openClient } from '../../client/connection';
import { loadDataConverter } from '../../client/data-converter';
import { countOpenWorkflows } from '../../client/open-histories';
import { batchIdFromBytes } from '../../core/names/ids';
import { configSchema, type Config } from '../../platform/config-schema';
import { replayOpen, type ReplayVerdict } from '../../workers/replay-open';
import { BATCH_QUEUE } from '../../workflows/contract';
import { startTemporal, TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';
import { FakeBatch } from './fake-batch';
import { tracingPlugin, workflowBundle } from './play-scenario';

/** Reverses the bytes of every payload: what was written with it cannot be read without it. */
const CODEC = `
const turn = (p) => ({ metadata: { encoding: Buffer.from('binary/turned'), was: p.metadata.encoding }, data: Buffer.from(p.data ?? []).reverse() });
const back = (p) => ({ metadata: { encoding: p.metadata.was }, data: Buffer.from(p.data ?? []).reverse() });
exports.payloadCodec = { encode: async (all) => all.map(turn), decode: async (all) => all.map(back) };
`;

const folder = mkdtempSync(join(tmpdir(), 'nightshift-replay-'));
let config: Config;
let client: ReturnType<typeof openClient>;

beforeAll(async () => {
  const { address, namespace } = await startTemporal();
  const codec = join(folder, 'codec.js');
  writeFileSync(codec, CODEC);
  config = configSchema.parse({ temporal: { address, namespace, payload_codec: codec } });
  client = openClient(config.temporal);
  await workflowBundle();
}, TEMPORAL_START_MS);
afterAll(async () => {
  await client?.connection.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A batch that waits in ingestion, and one whose first chunk waits for a worker. */
async function leaveTwoBatchesOpen(): Promise<{ ingesting: string; sending: string }> {
  const ids = { ingesting: newId(), sending: newId() };
  const connection = await NativeConnection.connect({ address: config.temporal.address });
  const activities = new FakeBatch().activities();
  const worker = await Worker.create({
    connection,
    namespace: config.temporal.namespace,
    dataConverter: loadDataConverter(config.temporal) ?? {},
    taskQueue: BATCH_QUEUE,
    workflowBundle: await workflowBundle(),
    plugins: [tracingPlugin()],
    activities: {
      ...activities,
      ingest: (input: Parameters<typeof activities.ingest>[0]) =>
        input.batchId === ids.ingesting ? Context.current().cancelled : activities.ingest(input),
    },
    shutdownGraceTime: 0,
  });
  const run = worker.run();
  for (const id of Object.values(ids)) await start(id);
  await untilScheduled(ids.ingesting, 'ingest');
  await untilScheduled(ids.sending, 'executeChunk');
  worker.shutdown();
  await run;
  await connection.close();
  return ids;
}

async function untilScheduled(id: string, activity: string): Promise<void> {
  await until(
    async () => {
      const { events } = await client.workflow.getHandle(id).fetchHistory();
      return events?.some(
        (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === activity,
      );
    },
    20_000,
    `${activity} of ${id}`,
    50,
  );
}

function start(id: string): Promise<void> {
  const expiresAtSec = Math.floor(Date.now() / 1000) + 3600;
  const rest = { tenant: 'acme', endpoint: '/v1/chat/completions', inputFileId: 'file-1' };
  return createBatchWorkflows(client, { callTimeoutMs: 10_000 }).start({
    id,
    expiresAtSec,
    ...rest,
  });
}

function newId(): string {
  return batchIdFromBytes(randomBytes(16));
}

type Options = Partial<Parameters<typeof replayOpen>[0]>;

async function replayAll(options: Options = {}): Promise<Map<string, ReplayVerdict>> {
  const found = new Map<string, ReplayVerdict>();
  const bundle = { workflowBundle: await workflowBundle() };
  for await (const verdict of replayOpen({ config, client, ...bundle, ...options })) {
    found.set(verdict.workflowId, verdict);
  }
  return found;
}

describe('the replay of open workflows', () => {
  let ids: { ingesting: string; sending: string };
  beforeAll(async () => {
    ids = await leaveTwoBatchesOpen();
    await until(async () => (await countOpenWorkflows(client, {})) === 2, 20_000, 'visibility', 50);
  }, 60_000);

  it('passes every open batch, with encoded payloads, if the code is the same', async () => {
    const found = await replayAll();
    expect([...found.keys()].sort()).toEqual(Object.values(ids).sort());
    for (const { verdict, events, workflowType } of found.values()) {
      expect(verdict).toBe('replays');
      expect(events).toBeGreaterThan(5);
      expect(workflowType).toBe('batchWorkflow');
    }
  });

  it('names the batch that changed code cannot continue, and the first event that differs', async () => {
    const { code } = await workflowBundle();
    const changed = { code: code.replaceAll('executeChunk', 'executeOther') };
    expect(changed.code).not.toBe(code);
    const found = await replayAll({ workflowBundle: changed });
    expect(found.get(ids.ingesting)?.verdict).toBe('replays');
    const { verdict, message, divergingEvent } = found.get(ids.sending) ?? {};
    expect({ verdict, divergingEvent }).toEqual({
      verdict: 'diverges',
      divergingEvent: { id: expect.any(Number) as number, type: 'ActivityTaskScheduled' },
    });
    expect(message).toMatch(/[Nn]ondeterminism/);
  });

  it('takes the newest ones up to a limit, or those that a filter selects', async () => {
    expect([...(await replayAll({ limit: 1 })).keys()]).toHaveLength(1);
    const filter = `WorkflowId = '${ids.ingesting}'`;
    expect([...(await replayAll({ filter })).keys()]).toEqual([ids.ingesting]);
    expect((await replayAll({ filter: `BatchTenant = 'other'` })).size).toBe(0);
    await expect(replayAll({ filter: 'this is no filter' })).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });
});
