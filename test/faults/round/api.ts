import { setTimeout as delay } from 'node:timers/promises';
import type { BatchView } from '../checker/evidence';

/** The API as a patient client uses it: no call waits for ever, what fails is tried again. */
export interface FaultsApi {
  upload(text: string): Promise<string>;
  /** Creates one batch, also where answers get lost: a batch that is there already is found. */
  create(input: { fileId: string; window: string; name: string }): Promise<string>;
  /** One GET; null where nothing came back. */
  look(batchId: string): Promise<BatchView | null>;
  /** One cancel; null where nothing came back or the server was not able to decide. */
  cancel(batchId: string): Promise<{ httpStatus: number; batch: BatchView | null } | null>;
  content(fileId: string): Promise<string>;
  /** Deletes a file; one that is gone already counts as deleted. */
  remove(fileId: string): Promise<void>;
}

const CALL_MS = 10_000;
const PATIENCE_MS = 90_000;
const PAUSE_MS = 200;

export function faultsApi(baseUrl: string): FaultsApi {
  const call = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${baseUrl}${path}`, { ...init, signal: AbortSignal.timeout(CALL_MS) });

  async function patiently<T>(what: string, work: () => Promise<T>): Promise<T> {
    const untilMs = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (performance.now() > untilMs) throw new Error(`${what}: ${String(error)}`);
        await delay(PAUSE_MS);
      }
    }
  }

  async function find(name: string): Promise<string | null> {
    const { data } = await json<{ data: { id: string; metadata: { name?: string } | null }[] }>(
      await call('/batches?limit=100'),
    );
    return data.find(({ metadata }) => metadata?.name === name)?.id ?? null;
  }

  return {
    upload: (text) =>
      patiently('upload', async () => {
        const form = new FormData();
        form.set('purpose', 'batch');
        form.set('file', new Blob([text]), 'input.jsonl');
        return (await json<{ id: string }>(await call('/files', { method: 'POST', body: form })))
          .id;
      }),
    create: ({ fileId, window, name }) => {
      let unsure = false;
      return patiently('create', async () => {
        const found = unsure ? await find(name) : null;
        if (found !== null) return found;
        unsure = true;
        const body = {
          input_file_id: fileId,
          endpoint: '/v1/chat/completions',
          completion_window: window,
          metadata: { name },
        };
        const headers = { 'content-type': 'application/json' };
        const init = { method: 'POST', headers, body: JSON.stringify(body) };
        return (await json<{ id: string }>(await call('/batches', init))).id;
      });
    },
    look: (batchId) =>
      call(`/batches/${batchId}`)
        .then((response) => json<BatchView>(response))
        .catch(() => null),
    cancel: async (batchId) => {
      try {
        const response = await call(`/batches/${batchId}/cancel`, { method: 'POST' });
        if (response.status >= 500) return null;
        const batch = response.ok ? ((await response.json()) as BatchView) : null;
        return { httpStatus: response.status, batch };
      } catch {
        return null;
      }
    },
    remove: (fileId) =>
      patiently('delete', async () => {
        const { ok, status } = await call(`/files/${fileId}`, { method: 'DELETE' });
        if (!ok && status !== 404) throw new Error(`status ${status}`);
      }),
    content: (fileId) =>
      patiently('content', async () => {
        const response = await call(`/files/${fileId}/content`);
        if (!response.ok) throw new Error(`status ${response.status}`);
        return response.text();
      }),
  };
}

async function json<T>(response: Response): Promise<T> {
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}
