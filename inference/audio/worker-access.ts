import { type ChannelCredentials, credentials, Metadata } from '@grpc/grpc-js';
import { apiKeyFile, readApiKey } from '../../platform/api-key-file';
import type { AudioWorkerConfig } from '../../platform/config-audio';
import { readTlsFiles } from '../secrets';

/** How an audio worker is reached. The files that settings name are read once. */
export interface WorkerAccess {
  readonly address: string;
  readonly credentials: ChannelCredentials;
  /** Metadata of a call, with the worker's API key if it has one. */
  metadata(fields: Readonly<Record<string, string>>): Metadata;
}

/** Reads key and certificates of a worker. @throws config_invalid if a file cannot be read */
export function readWorkerAccess(worker: AudioWorkerConfig, secretsDir: string): WorkerAccess {
  const file = apiKeyFile(worker, secretsDir, `audio worker ${worker.address}`);
  const authorization = file === null ? null : `Bearer ${readApiKey(file)}`;
  return {
    address: worker.address,
    credentials: worker.tls ? tlsCredentials(worker) : credentials.createInsecure(),
    metadata: (fields) => {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
      if (authorization !== null) metadata.set('authorization', authorization);
      return metadata;
    },
  };
}

function tlsCredentials(worker: AudioWorkerConfig): ChannelCredentials {
  const { ca, key, cert, rejectUnauthorized = true } = readTlsFiles(worker);
  return credentials.createSsl(ca ?? null, key ?? null, cert ?? null, { rejectUnauthorized });
}
