import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import type { S3StoreOptions } from '../../storage/objects/s3/s3-bucket';
import { findGoTool, GO_TOOL_MS } from './go-tool';
import { freePort } from './free-port';
import { oncePerRun, spawnGuarded } from './once-per-run';
import { until } from './until';

/** A bucket of its own on the S3 server of this Jest run. */
export interface TestBucket {
  /** How `openS3Store` reaches it, without a prefix. */
  readonly options: S3StoreOptions & Required<Pick<S3StoreOptions, 'endpoint' | 'credentials'>>;
  /** Folder on this host with the objects, each a file under its key. */
  readonly folder: string;
}

/** The longest that a first {@link openTestBucket} can take: a machine without the server builds it. */
export const S3_START_MS = GO_TOOL_MS + 30_000;

const ACCESS_KEY_ID = 'nightshift-test';
const SECRET_ACCESS_KEY = 'nightshift-test-secret';

/**
 * Makes a bucket on versitygw, which the first test file of a Jest run starts. Call it inside
 * `describeWithGoTool('versitygw', …)`, in a `beforeAll` with {@link S3_START_MS} of time.
 */
export async function openTestBucket(): Promise<TestBucket> {
  const server = await oncePerRun({ name: 's3', start: startServer, startLimitMs: S3_START_MS });
  const bucket = `test-${randomBytes(6).toString('hex')}`;
  const folder = path.join(server.folder, bucket);
  // Folders below that of the server are its buckets.
  fs.mkdirSync(folder);
  return {
    folder,
    options: {
      bucket,
      region: 'us-east-1',
      endpoint: server.endpoint,
      usePathStyle: true,
      credentials: { accessKeyId: ACCESS_KEY_ID, secretAccessKey: SECRET_ACCESS_KEY },
    },
  };
}

async function startServer(folder: string): Promise<{ endpoint: string; folder: string }> {
  const program = await findGoTool('versitygw');
  if (program === null) throw new Error('there is no versitygw: use describeWithGoTool');
  const address = `127.0.0.1:${await freePort()}`;
  const logFile = spawnGuarded('s3', program, [
    ...['--port', address, '--access', ACCESS_KEY_ID, '--secret', SECRET_ACCESS_KEY],
    ...['--keep-alive', '--quiet', '--health', '/health', 'posix', folder],
  ]);
  const endpoint = `http://${address}`;
  try {
    await until(() => answers(`${endpoint}/health`), 20_000, `versitygw at ${address}`, 50);
  } catch (cause) {
    throw new Error(`versitygw did not start:\n${fs.readFileSync(logFile, 'utf8')}`, { cause });
  }
  return { endpoint, folder };
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    (answer) => answer.ok,
    () => false,
  );
}
