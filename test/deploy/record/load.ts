import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chatLines, submit } from '../../support/stack';
import { startRecordedStack } from './recorded-stack';

it('records a stack whose worker is overloaded', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'nightshift-record-'));
  const fault = (name: string): string => path.join(folder, name);
  process.env['RECORD_FAULTS'] = folder;
  process.env['NODE_OPTIONS'] = `--require ${path.join(__dirname, 'slow-process.js')}`;
  const recorded = await startRecordedStack((gateway) => ({
    worker: { heartbeat_timeout: '10s', exec_slots: 1 },
    global_inference_gateway: gateway,
  }));
  const { backend, proxied } = recorded;

  await recorded.phase('healthy', 20);
  await recorded.phase('the event loop is blocked', 14, () => set(fault('block-event-loop')));
  await recorded.phase('the event loop is free', 16, () => clear(fault('block-event-loop')));
  await recorded.phase('the disk is slow', 28, () => set(fault('slow-disk')));
  await recorded.phase('the disk is fast', 20, () => clear(fault('slow-disk')));
  await recorded.phase('the journal is slow', 16, async () => {
    await submit(proxied.stack.client, chatLines(3_000));
    await set(fault('slow-journal'));
  });
  await recorded.phase('the journal is fast', 16, () => clear(fault('slow-journal')));
  recorded.traffic = false;
  await recorded.phase('one slot for twelve slow batches', 80, async () => {
    backend.latencyMs = 8_000;
    for (let i = 0; i < 12; i++)
      await submit(
        proxied.stack.client,
        chatLines(10, () => `m${i}`),
      );
  });
  await recorded.finish('load');
  rmSync(folder, { recursive: true });
});

function set(file: string): Promise<void> {
  return Promise.resolve(writeFileSync(file, ''));
}

function clear(file: string): Promise<void> {
  return Promise.resolve(rmSync(file));
}
