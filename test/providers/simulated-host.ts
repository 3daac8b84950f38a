import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startSimulator } from '../../simulator/main';
import type { ApiKeyFile } from '../../platform/api-key-file';
import type { HostStats } from './conformance/steps';

/** A simulator of its own for one test, with what opens and watches an adapter on it. */
export interface SimulatedHost {
  /** The address of the simulator. */
  readonly url: string;
  /** A file with a key, as settings name it. */
  readonly keyFile: ApiKeyFile;
  /** Changes settings of the simulated providers (docs/design/simulator.md#providers). */
  configure(change: object): Promise<void>;
  /** `GET /simulator/providers/stats`. */
  stats(): Promise<HostStats>;
  /** Replaces the content of the key file. */
  writeKey(key: string): void;
  /** Registers a function that {@link closeHosts} calls. */
  onClose(close: () => Promise<unknown>): void;
}

/** Connection settings that suit a simulator. */
export const QUICK = {
  tls: {},
  requestTimeoutMs: 5_000,
  transferTimeoutMs: 10_000,
  maxResultLineBytes: 100_000,
};

const closers: (() => Promise<unknown> | void)[] = [];

/** Closes all simulators, and what was opened on them. Call it after each test. */
export async function closeHosts(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

/** Starts a simulator and writes a file with a key. */
export async function openSimulatedHost(key: string): Promise<SimulatedHost> {
  const simulator = await startSimulator({ port: 0 });
  closers.push(() => simulator.close());
  const folder = mkdtempSync(path.join(tmpdir(), 'provider-host-'));
  closers.push(() => rmSync(folder, { recursive: true }));
  const keyFile = path.join(folder, 'key');
  writeFileSync(keyFile, key);
  const control = `${simulator.url}/simulator/providers`;
  return {
    url: simulator.url,
    keyFile: { path: keyFile, setting: 'api_key_file' },
    configure: async (change) => {
      const init = { method: 'PUT', body: JSON.stringify(change) };
      const answer = await fetch(`${control}/config`, init);
      if (!answer.ok) throw new Error(await answer.text());
    },
    stats: async () => (await (await fetch(`${control}/stats`)).json()) as HostStats,
    writeKey: (next) => writeFileSync(keyFile, next),
    onClose: (close) => void closers.push(close),
  };
}
