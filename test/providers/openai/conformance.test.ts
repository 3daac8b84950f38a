import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openProvider } from '../../../providers/registry';
import { startSimulator } from '../../../simulator/main';
import type { ConformanceHost, HostStats } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';

const closers: (() => Promise<unknown> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openHost(): Promise<ConformanceHost> {
  const simulator = await startSimulator({ port: 0 });
  closers.push(() => simulator.close());
  const folder = mkdtempSync(path.join(tmpdir(), 'conformance-'));
  closers.push(() => rmSync(folder, { recursive: true }));
  const keyFile = path.join(folder, 'key');
  writeFileSync(keyFile, 'sk-before');
  const provider = openProvider({
    type: 'openai',
    url: `${simulator.url}/providers/openai/v1`,
    apiKey: { path: keyFile, setting: 'api_key_file' },
    tls: {},
    requestTimeoutMs: 5_000,
    transferTimeoutMs: 10_000,
    maxResultLineBytes: 100_000,
  });
  closers.push(() => provider.close());
  const control = `${simulator.url}/simulator/providers`;
  return {
    provider,
    configure: async (change) => {
      const init = { method: 'PUT', body: JSON.stringify(change) };
      const answer = await fetch(`${control}/config`, init);
      if (!answer.ok) throw new Error(await answer.text());
    },
    stats: async () => (await (await fetch(`${control}/stats`)).json()) as HostStats,
    rotateKey: (key) => writeFileSync(keyFile, key),
  };
}

describeConformance(
  'openai',
  {
    upload: 'files.create',
    create: 'batches.create',
    list: 'batches.list',
    status: 'batches.retrieve',
    cancel: 'batches.cancel',
    content: 'files.content',
    remove: 'files.delete',
  },
  openHost,
);
