import { toStreamingFile } from 'openai';
import type OpenAI from 'openai';
import type { Batch, BatchCreateParams } from 'openai/resources/batches';
import type { FileObject } from 'openai/resources/files';
import { NightshiftError } from '../../core/errors';
import type { Connection } from './connection-flags';
import { explainFailure } from './failures';
import { openOpenAi } from './openai-client';
import type { ProviderJob } from './provider-job';

const REQUEST_TIMEOUT_MS = 60_000;
/** Longest upload. */
const UPLOAD_TIMEOUT_MS = 6 * 3_600_000;
const MAX_PAGE = 100;
/**
 * Node's fetch normally keeps a copy of the whole body, in case a redirect makes it send the body again.
 * These options avoid the copy: an upload of 191 MB takes 80 MB of memory instead of 256 MB.
 */
const STREAMED = { redirect: 'error', window: null } as const;

/** What a batch is created with. */
export interface NewBatch {
  readonly inputFileId: string;
  readonly endpoint: string;
  /** Duration with its unit, such as `24h`. */
  readonly window: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** A repeated request with the same key creates no second batch. */
  readonly idempotencyKey: string;
}

/** A file to upload. */
export interface NewFile {
  readonly purpose: 'batch' | 'user_data';
  readonly name: string;
  /** Read once, in order. */
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly idempotencyKey: string;
}

/**
 * The server's Files and Batches API, through the official SDK. Errors are sentences for people; the code
 * `unavailable` marks those worth a retry. A call throws when its `AbortSignal` aborts.
 */
export interface BatchService extends Pick<Connection, 'baseUrl' | 'followUpFlags'> {
  /** Lists one batch, so that a wrong address or key is reported before an upload. */
  checkAccess(signal: AbortSignal): Promise<void>;
  /** Does not retry, because a stream can be read only once. */
  upload(file: NewFile, signal: AbortSignal): Promise<FileObject>;
  create(batch: NewBatch): Promise<Batch>;
  /** `retries`: how often the SDK retries by itself. */
  retrieve(id: string, options: { signal: AbortSignal; retries: number }): Promise<Batch>;
  cancel(id: string): Promise<Batch>;
  /** Newest first. `hasMore`: the server has more than `limit`. */
  list(limit: number, signal: AbortSignal): Promise<{ batches: Batch[]; hasMore: boolean }>;
  /** The jobs of a batch at providers. Only Nightshift has them: elsewhere `not_found`. */
  jobs(id: string, signal: AbortSignal): Promise<ProviderJob[]>;
  /** The file's bytes, and their number if the server reports it. */
  content(fileId: string, signal: AbortSignal): Promise<{ body: Content; bytes: number | null }>;
}

type Content = NonNullable<Response['body']>;

/** A service for one connection. It connects with the first call. */
export function createBatchService(connection: Connection): BatchService {
  const { baseUrl, followUpFlags, apiKey, headers, env, isNamedByUser } = connection;
  const client = openOpenAi({
    ...{ baseUrl, apiKey, headers, env },
    usesEnvironment: isNamedByUser,
    timeoutMs: REQUEST_TIMEOUT_MS,
  });
  const context = { baseUrl, hasKey: apiKey !== null, isNamedByUser };
  const explained = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw explainFailure(error, context);
    }
  };
  const batchOf = (work: () => Promise<Batch>): Promise<Batch> =>
    explained(async () => checkBatch(await work(), baseUrl));
  return {
    baseUrl,
    followUpFlags,
    checkAccess: (signal) =>
      explained(async () => {
        await withOwnSignal(signal, (own) => client.batches.list({ limit: 1 }, { signal: own }));
      }),
    upload: (file, signal) =>
      explained(() => withOwnSignal(signal, (own) => uploadFile(client, file, own))),
    create: (batch) => batchOf(() => createBatch(client, batch)),
    retrieve: (id, { signal, retries }) =>
      batchOf(() =>
        withOwnSignal(signal, (own) =>
          client.batches.retrieve(id, { signal: own, maxRetries: retries }),
        ),
      ),
    cancel: (id) => batchOf(() => client.batches.cancel(id)),
    list: (limit, signal) =>
      explained(() => withOwnSignal(signal, (own) => listBatches(client, limit, own))),
    jobs: (id, signal) =>
      explained(() => withOwnSignal(signal, (own) => listJobs(client, id, own))),
    content: (fileId, signal) => explained(() => openContent(client, fileId, signal)),
  };
}

/**
 * Gives each call its own signal. The SDK never removes its listeners from a signal, and a watched batch is
 * polled many thousand times.
 */
async function withOwnSignal<T>(
  signal: AbortSignal,
  work: (own: AbortSignal) => PromiseLike<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await work(controller.signal);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

async function uploadFile(
  client: OpenAI,
  { purpose, name, bytes, idempotencyKey }: NewFile,
  signal: AbortSignal,
): Promise<FileObject> {
  const file = await client.files.create(
    { purpose, file: toStreamingFile(bytes, name) },
    {
      signal,
      timeout: UPLOAD_TIMEOUT_MS,
      headers: { 'Idempotency-Key': idempotencyKey },
      fetchOptions: STREAMED,
    },
  );
  if (typeof file?.id === 'string') return file;
  throw new NightshiftError(
    'invalid_request',
    `${client.baseURL} did not answer with a file: check the base URL, which usually ends in /v1`,
  );
}

function createBatch(client: OpenAI, batch: NewBatch): Promise<Batch> {
  const body: BatchCreateParams = {
    input_file_id: batch.inputFileId,
    // The server decides which endpoints and windows exist; the SDK's types know only some.
    endpoint: batch.endpoint as BatchCreateParams['endpoint'],
    completion_window: batch.window as BatchCreateParams['completion_window'],
    ...(batch.metadata === null ? {} : { metadata: { ...batch.metadata } }),
  };
  return client.batches.create(body, { headers: { 'Idempotency-Key': batch.idempotencyKey } });
}

async function listBatches(
  client: OpenAI,
  limit: number,
  signal: AbortSignal,
): Promise<{ batches: Batch[]; hasMore: boolean }> {
  const batches: Batch[] = [];
  const query = { limit: Math.min(limit + 1, MAX_PAGE) };
  for await (const batch of client.batches.list(query, { signal })) {
    if (batches.length === limit) return { batches, hasMore: true };
    batches.push(batch);
  }
  return { batches, hasMore: false };
}

async function listJobs(client: OpenAI, id: string, signal: AbortSignal): Promise<ProviderJob[]> {
  const path = `/nightshift/batches/${encodeURIComponent(id)}/jobs`;
  const answer = await client.get<{ data?: unknown } | null>(path, { signal });
  if (Array.isArray(answer?.data)) return answer.data as ProviderJob[];
  const message = `${client.baseURL} did not answer with a list of jobs: it is not a Nightshift`;
  throw new NightshiftError('not_found', message);
}

async function openContent(
  client: OpenAI,
  fileId: string,
  signal: AbortSignal,
): Promise<{ body: Content; bytes: number | null }> {
  const response = await client.files.content(fileId, { signal });
  if (response.body === null) {
    throw new NightshiftError(
      'unavailable',
      `the server answered without the content of file ${fileId}: try again`,
    );
  }
  const length = response.headers.get('content-length');
  const isPlain = response.headers.get('content-encoding') === null;
  return { body: response.body, bytes: length !== null && isPlain ? Number(length) : null };
}

/** An ordinary web server may answer any request with 200 and a page. */
function checkBatch(answer: Batch, baseUrl: string): Batch {
  const { id, status } = (answer ?? {}) as Partial<Batch>;
  if (typeof id === 'string' && typeof status === 'string') return answer;
  const message = `${baseUrl} did not answer with a batch: check the base URL, which usually ends in /v1`;
  throw new NightshiftError('invalid_request', message);
}
