import { S3Client } from '@aws-sdk/client-s3';
import { NightshiftError } from '../../../core/errors';
import { processEnvironment } from '../../../platform/config';
import { requireKey } from '../object-key';
import { sendGetsOurselves } from './get-requests';
import { observeRetries, type OnRetry } from './observe-retries';
import { honorLimits, limited, type Command } from './request-limits';
import { leaveBodiesUnsigned } from './unsigned-bodies';

/** How to reach a bucket, and how objects are written to it (docs/configuration.md#s3). */
export interface S3StoreOptions {
  readonly bucket: string;
  /** Without it, the region of AWS's own settings; `us-east-1` if there is an endpoint. */
  readonly region?: string;
  /** Base URL of a service other than AWS. */
  readonly endpoint?: string;
  /** Beginning of all keys, with or without a slash at its end. */
  readonly prefix?: string;
  /** Names the bucket in the path and not in the host. */
  readonly usePathStyle?: boolean;
  readonly encryption?: 'AES256' | 'aws:kms';
  readonly kmsKeyId?: string;
  /** Without them, the usual chain: environment, shared files, web identity, container, instance. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** Longest time of one request without its body, and longest pause within a body, milliseconds. */
  readonly requestTimeoutMs?: number;
  /** Called for each request that is sent once more; must not throw. */
  readonly onRetry?: OnRetry;
  /** Called with the size of each chunk once it is written or consumed. */
  readonly onPassed?: (bytes: number) => void;
}

/** A bucket that is open for requests. */
export interface S3Bucket {
  readonly client: S3Client;
  readonly name: string;
  /** For messages: where the bucket is looked for. */
  readonly place: string;
  readonly timeoutMs: number;
  /** To be called before a request is made again that the client has given up. */
  readonly onRetry: OnRetry;
  /** Whether parts of uploads carry checksums; the AWS setting for services that refuse them says no. */
  readonly hasChecksums: boolean;
  /** Fields of every request that creates an object. */
  readonly encryption: EncryptionFields;
  /** The beginning of all keys in the bucket, empty or with a slash at its end. */
  readonly prefix: string;
  /** `Bucket` and `Key` of an object. @throws internal for a text that is not a key */
  at(key: string): { readonly Bucket: string; readonly Key: string };
  /** The command with time for a body of this many bytes, which a slow line needs, and with a signal that ends it. */
  limited<C extends Command>(command: C, bytes: number, signal?: AbortSignal): C;
}

interface EncryptionFields {
  readonly ServerSideEncryption?: 'AES256' | 'aws:kms';
  readonly SSEKMSKeyId?: string;
}

const REQUEST_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A request body may take this much longer than `requestTimeoutMs`. */
const SLOWEST_BYTES_PER_MS = 256;
/** Bounds connections and file descriptors. Streams whose consumer pauses give theirs back. */
const MAX_SOCKETS = 256;
/** With the SDK's exponential backoff, 0.8 s of waiting at most, or 4 s if the store asks for less. */
const MAX_ATTEMPTS = 4;
/** The SDK would write its warnings to the console. */
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** Prepares requests to a bucket; sends none. Destroy its client in the end. @throws config_invalid */
export async function openBucket(options: S3StoreOptions): Promise<S3Bucket> {
  const { bucket, endpoint, prefix = '', encryption, kmsKeyId } = options;
  const { requestTimeoutMs: timeoutMs = REQUEST_TIMEOUT_MS, onRetry = () => undefined } = options;
  const client = createClient(options, timeoutMs);
  // It prepares what it would log, which takes a twentieth of a request, although nothing is logged.
  client.middlewareStack.remove('loggerMiddleware');
  observeRetries(client, onRetry);
  sendGetsOurselves(client, {
    connections: MAX_SOCKETS,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    requestTimeoutMs: timeoutMs,
  });
  honorLimits(client);
  await requireRegion(client);
  const hasChecksums = (await client.config.requestChecksumCalculation()) === 'WHEN_SUPPORTED';
  if (hasChecksums) leaveBodiesUnsigned(client);
  const start = prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
  return {
    client,
    name: bucket,
    place: endpoint ?? 'AWS',
    timeoutMs,
    onRetry,
    hasChecksums,
    encryption: {
      ...(encryption === undefined ? {} : { ServerSideEncryption: encryption }),
      ...(kmsKeyId === undefined ? {} : { SSEKMSKeyId: kmsKeyId }),
    },
    prefix: start,
    at: (key) => ({ Bucket: bucket, Key: start + requireKey(key) }),
    limited: (command, bytes, signal) =>
      limited(command, {
        requestTimeout: timeoutMs + Math.ceil(bytes / SLOWEST_BYTES_PER_MS),
        ...(signal === undefined ? {} : { abortSignal: signal }),
      }),
  };
}

function createClient(options: S3StoreOptions, requestTimeout: number): S3Client {
  const { endpoint, credentials, usePathStyle = false } = options;
  const region = options.region ?? (endpoint === undefined ? undefined : regionOfEndpoint());
  const agent = { keepAlive: true, maxSockets: MAX_SOCKETS };
  return new S3Client({
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    forcePathStyle: usePathStyle,
    retryMode: 'standard',
    maxAttempts: MAX_ATTEMPTS,
    // A checksum over the whole body would hold its connection when the body is destroyed early.
    responseChecksumValidation: 'WHEN_REQUIRED',
    logger: SILENT,
    // Middleware is added before the first request only.
    cacheMiddleware: true,
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout,
      throwOnRequestTimeout: true,
      httpAgent: agent,
      httpsAgent: agent,
      logger: SILENT,
    },
  });
}

async function requireRegion(client: S3Client): Promise<void> {
  try {
    await client.config.region();
  } catch (cause) {
    const message =
      'object_store.region: found no region. Set it, or AWS_REGION, or an AWS profile that has one.';
    throw new NightshiftError('config_invalid', message, { cause });
  }
}

function regionOfEndpoint(): string {
  const env = processEnvironment();
  return env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || 'us-east-1';
}
