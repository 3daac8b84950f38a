import { setTimeout as delay } from 'node:timers/promises';
import type { BatchView } from '../checker/evidence';

/** The API for a client that keeps trying: every call has a timeout, and failed calls are repeated. */
export interface FaultsApi {
  upload(text: string): Promise<string>;
  /** Creates exactly one batch. If an answer gets lost, the batch is looked up by its name. */
  create(input: NewBatch): Promise<string>;
  /** One GET; null if no answer came. */
  look(batchId: string): Promise<BatchView | null>;
  /** One cancel; null if no answer came or the server could not decide. */
  cancel(batchId: string): Promise<{ httpStatus: number; batch: BatchView | null } | null>;
  content(fileId: string): Promise<string>;
  /** Deletes a file. A file that does not exist counts as deleted. */
  remove(fileId: string): Promise<void>;
}

interface NewBatch {
  readonly fileId: string;
  readonly window: string;
  readonly name: string;
}

type Call = (path: string, init?: RequestInit) => Promise<Response>;

const CALL_MS = 10_000;
const RETRY_MS = 90_000;
const PAUSE_MS = 200;

/** The API of a stack at this base URL. */
export function faultsApi(baseUrl: string): FaultsApi {
  const call: Call = (path, init = {}) =>
    fetch(`${baseUrl}${path}`, { ...init, signal: AbortSignal.timeout(CALL_MS) });
  return {
    upload: (text) => retried('upload', () => upload(call, text)),
    create: (input) => createOnce(call, input),
    look: (batchId) =>
      call(`/batches/${batchId}`)
        .then((response) => json<BatchView>(response))
        .catch(() => null),
    cancel: (batchId) => cancel(call, batchId).catch(() => null),
    remove: (fileId) =>
      retried('delete', async () => {
        const { ok, status } = await call(`/files/${fileId}`, { method: 'DELETE' });
        if (!ok && status !== 404) throw new Error(`status ${status}`);
      }),
    content: (fileId) =>
      retried('content', async () => {
        const response = await call(`/files/${fileId}/content`);
        if (!response.ok) throw new Error(`status ${response.status}`);
        return response.text();
      }),
  };
}

async function upload(call: Call, text: string): Promise<string> {
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([text]), 'input.jsonl');
  return (await json<{ id: string }>(await call('/files', { method: 'POST', body: form }))).id;
}

async function createOnce(call: Call, { fileId, window, name }: NewBatch): Promise<string> {
  const body = {
    input_file_id: fileId,
    endpoint: '/v1/chat/completions',
    completion_window: window,
    metadata: { name },
  };
  const headers = { 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(body) };
  let mayExist = false;
  return retried('create', async () => {
    const found = mayExist ? await findByName(call, name) : null;
    if (found !== null) return found;
    mayExist = true;
    return (await json<{ id: string }>(await call('/batches', init))).id;
  });
}

async function findByName(call: Call, name: string): Promise<string | null> {
  const { data } = await json<{ data: { id: string; metadata: { name?: string } | null }[] }>(
    await call('/batches?limit=100'),
  );
  return data.find(({ metadata }) => metadata?.name === name)?.id ?? null;
}

async function cancel(call: Call, batchId: string): ReturnType<FaultsApi['cancel']> {
  const response = await call(`/batches/${batchId}/cancel`, { method: 'POST' });
  if (response.status >= 500) return null;
  const batch = response.ok ? ((await response.json()) as BatchView) : null;
  return { httpStatus: response.status, batch };
}

async function retried<T>(what: string, work: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + RETRY_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > untilMs) throw new Error(`${what}: ${String(error)}`);
      await delay(PAUSE_MS);
    }
  }
}

async function json<T>(response: Response): Promise<T> {
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}
