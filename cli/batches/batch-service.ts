import { toStreamingFile } from 'openai';
import type OpenAI from 'openai';
import type { Batch, BatchCreateParams } from 'openai/resources/batches';
import type { FileObject } from 'openai/resources/files';
import { NightshiftError } from '../../core/errors';
import { openOpenAi } from './openai-client';
import type { Connection } from './connection-flags';
import { explainFailure } from './failures';

const REQUEST_TIMEOUT_MS = 60_000;
/** The whole upload must fit in it. */
const UPLOAD_TIMEOUT_MS = 6 * 3_600_000;
const MAX_PAGE = 100;
/**
 * With anything else Node's fetch keeps a copy of the whole body, to send it again after a redirect:
 * 256 MB of memory for an upload of 191 MB, against 80 MB so.
 */
const STREAMED = { redirect: 'error', window: null } as const;

/** What a batch is created with. */
export interface NewBatch {
  readonly inputFileId: string;
  readonly endpoint: string;
  /** Duration with its unit, such as `24h`. */
  readonly window: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** The same key creates the same batch: a repeated request makes no second one. */
  readonly idempotencyKey: string;
}

/** A file to be uploaded, of purpose `batch`. */
export interface NewFile {
  readonly name: string;
  /** Read once, in order. */
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly idempotencyKey: string;
}

/**
 * The server's Files and Batches API through the official SDK. Everything it throws is a sentence for
 * people; what may be tried again is `unavailable`. An `AbortSignal` that aborts makes the call throw.
 */
export interface BatchService extends Pick<Connection, 'baseUrl' | 'repeated'> {
  /** Asks for one batch, so that a wrong address or key is known before an upload. */
  checkAccess(signal: AbortSignal): Promise<void>;
  /** Sent once: a stream cannot be repeated. */
  upload(file: NewFile, signal: AbortSignal): Promise<FileObject>;
  create(batch: NewBatch): Promise<Batch>;
  /** `retries`: how often the SDK tries again by itself. */
  retrieve(id: string, options: { signal: AbortSignal; retries: number }): Promise<Batch>;
  cancel(id: string): Promise<Batch>;
  /** Newest first; `hasMore` where the server has more than `limit`. */
  list(limit: number, signal: AbortSignal): Promise<{ batches: Batch[]; hasMore: boolean }>;
  /** The file's bytes, and how many there are where the server tells. */
  content(fileId: string, signal: AbortSignal): Promise<{ body: Content; bytes: number | null }>;
}

type Content = NonNullable<Response['body']>;

/** Opens no connection yet. */
export function createBatchService(connection: Connection): BatchService {
  const { baseUrl, repeated, apiKey, headers, env, isChosen } = connection;
  const client = openOpenAi({
    ...{ baseUrl, apiKey, headers, env },
    takesEnvironment: isChosen,
    timeoutMs: REQUEST_TIMEOUT_MS,
  });
  const scene = { baseUrl, hasKey: apiKey !== null, isChosen };
  const explained = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw explainFailure(error, scene);
    }
  };
  const batchOf = (work: () => Promise<Batch>): Promise<Batch> =>
    explained(async () => checkBatch(await work(), baseUrl));
  return {
    baseUrl,
    repeated,
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
    content: (fileId, signal) => explained(() => openContent(client, fileId, signal)),
  };
}

/**
 * A signal of this call alone: the SDK never takes its listeners off a signal, and a batch is looked
 * at many thousand times.
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
  { name, bytes, idempotencyKey }: NewFile,
  signal: AbortSignal,
): Promise<FileObject> {
  const file = await client.files.create(
    { purpose: 'batch', file: toStreamingFile(bytes, name) },
    {
      signal,
      timeout: UPLOAD_TIMEOUT_MS,
      headers: { 'Idempotency-Key': idempotencyKey },
      fetchOptions: STREAMED,
    },
  );
  if (typeof file?.id === 'string') return file;
  throw new NightshiftError('invalid_request', `${client.baseURL} did not answer with a file`);
}

function createBatch(client: OpenAI, batch: NewBatch): Promise<Batch> {
  const body: BatchCreateParams = {
    input_file_id: batch.inputFileId,
    // The server knows which endpoints and windows there are: more than the SDK's types tell.
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

async function openContent(
  client: OpenAI,
  fileId: string,
  signal: AbortSignal,
): Promise<{ body: Content; bytes: number | null }> {
  const response = await client.files.content(fileId, { signal });
  if (response.body === null) {
    throw new NightshiftError('unavailable', `the file ${fileId} came without a body`);
  }
  const length = response.headers.get('content-length');
  const isPlain = response.headers.get('content-encoding') === null;
  return { body: response.body, bytes: length !== null && isPlain ? Number(length) : null };
}

/** A web server that is no API answers 200 with a page. */
function checkBatch(answer: Batch, baseUrl: string): Batch {
  const { id, status } = (answer ?? {}) as Partial<Batch>;
  if (typeof id === 'string' && typeof status === 'string') return answer;
  const message = `${baseUrl} did not answer with a batch: the base URL usually ends in /v1`;
  throw new NightshiftError('invalid_request', message);
}
