import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../platform/config-schema';
import { configSchema } from '../../platform/config-schema';
import { freePort } from './free-port';
import { withDatabase } from './postgres';
import { scriptedOptions, startScriptedS3, type ScriptedS3 } from './scripted-s3';
import { startTcpProxy, type TcpProxy } from './tcp-proxy';

/** PostgreSQL and an S3 server that a test takes away and brings back, and settings that name them. */
export interface LateStores {
  readonly postgres: TcpProxy;
  readonly s3: TcpProxy;
  readonly bucket: ScriptedS3;
  readonly config: Config;
  /** What `/ready` of the process with these settings answers; null if nothing does. */
  ready(): Promise<{ readonly status: number; readonly checks: Record<string, string> } | null>;
  close(): Promise<void>;
}

/** Both stores refuse connections at first. Nothing answers at the address of Temporal. */
export async function startLateStores(): Promise<LateStores> {
  const database = await withDatabase();
  const bucket = await startScriptedS3();
  const folder = mkdtempSync(join(tmpdir(), 'nightshift-late-'));
  const url = new URL(database.url);
  const postgres = await startTcpProxy(Number(url.port));
  const s3 = await startTcpProxy(Number(new URL(bucket.endpoint).port));
  await Promise.all([postgres.become('refuse'), s3.become('refuse')]);
  url.port = String(postgres.port);
  const port = await freePort();
  const config = configSchema.parse({
    postgres: { url: url.href },
    temporal: { address: '127.0.0.1:1' },
    object_store: s3Settings(s3.port, folder),
    global_inference_gateway: { url: 'http://127.0.0.1:1' },
    log: { level: 'error', format: 'json' },
    api: { port: 0, observability_port: port },
    worker: { observability_port: port },
  });
  return {
    ...{ postgres, s3, bucket, config },
    ready: () => askReady(port),
    close: async () => {
      await Promise.all([postgres.close(), s3.close(), bucket.close()]);
      await database.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function s3Settings(port: number, folder: string) {
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'b');
  const { bucket, region } = scriptedOptions({ endpoint: '' } as ScriptedS3);
  return {
    ...{ type: 's3', bucket, region, endpoint: `http://127.0.0.1:${port}`, use_path_style: true },
    ...{ access_key_id: 'a', secret_access_key_file: secret },
  };
}

async function askReady(port: number) {
  const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => null);
  if (answer === null) return null;
  const { checks } = (await answer.json()) as { checks: Record<string, string> };
  return { status: answer.status, checks };
}
