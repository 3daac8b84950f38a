import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  loadPackageDefinition,
  type GrpcObject,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const FILE = 'nightshift/audio/v1/audio.proto';
/** Beside this file, or for the compiled one in `dist/proto`, in the folder of the sources. */
const FOLDERS = [__dirname, join(__dirname, '../../proto')];
let loaded: ServiceClientConstructor | undefined;

/**
 * The service `AudioWorker` of the contract of audio workers (docs/audio-workers.md): a constructor of clients, with
 * the definition for servers in `service`. Loading takes about 30 ms, once. Messages have the types of
 * `audio-messages.ts`.
 */
export function audioWorkerService(): ServiceClientConstructor {
  loaded ??= load();
  return loaded;
}

function load(): ServiceClientConstructor {
  const definition = loadSync(fileOfService(), {
    longs: Number,
    enums: String,
    defaults: true,
    arrays: true,
    oneofs: true,
  });
  const { nightshift } = loadPackageDefinition(definition);
  const v1 = ((nightshift as GrpcObject)['audio'] as GrpcObject)['v1'] as GrpcObject;
  return v1['AudioWorker'] as ServiceClientConstructor;
}

function fileOfService(): string {
  const file = FOLDERS.map((folder) => join(folder, FILE)).find((path) => existsSync(path));
  if (file === undefined) throw new Error(`${FILE} is missing beside ${__dirname}`);
  return file;
}
