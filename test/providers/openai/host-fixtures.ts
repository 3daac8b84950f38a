import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Provider } from '../../../providers/provider';
import type { OpenAiKind, ProviderKind } from '../../../providers/provider-settings';
import { openProvider } from '../../../providers/registry';
import { startLocalServer } from '../../inference/local-server';

/** A request as the host got it. */
export interface Request {
  readonly call: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
export type Handler = (request: Request, response: ServerResponse) => void;

export const KEY = 'sk-s3cret-key';
const closers: (() => Promise<unknown> | void)[] = [];
/** Closes everything that the functions of this file have opened. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

/** Registers a function that {@link closeAll} calls too. */
export function onClose(close: () => Promise<unknown>): void {
  closers.push(close);
}

/** A provider on a server that answers with `handler`, and the requests that it got. */
export function open(handler: Handler, type: OpenAiKind['type'] = 'openai') {
  return openKind(handler, { type }, '/v1/');
}

/** {@link open} for any type. @param at the path of the base URL */
export async function openKind(handler: Handler, kind: ProviderKind, at: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'provider-'));
  closers.push(() => rmSync(folder, { recursive: true }));
  const keyFile = path.join(folder, 'key');
  writeFileSync(keyFile, KEY);
  const requests: Request[] = [];
  const server = await startLocalServer(({ method, url, headers, body }, response) => {
    const request = { call: `${method} ${url}`, headers, body: body.toString() };
    requests.push(request);
    handler(request, response);
  });
  closers.push(() => server.close());
  const provider = openProvider({
    ...kind,
    url: `${server.url}${at}`,
    apiKey: { path: keyFile, setting: 'api_key_file' },
    tls: {},
    requestTimeoutMs: 5_000,
    transferTimeoutMs: 10_000,
    maxResultLineBytes: 1_000,
  });
  closers.push(() => provider.close());
  return { provider, requests, server, keyFile, calls: () => requests.map(({ call }) => call) };
}

export function reply(response: ServerResponse, status: number, json: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(json));
}

export const error = (code: string, message = 'no') => ({ error: { message, type: 'x', code } });
export const signal = new AbortController().signal;
export const send = { signal, timeoutMs: 2_000, mayLeave: () => true };
export const JOB = {
  jobId: `job_${'a'.repeat(32)}`,
  storeId: 'store-1',
  endpoint: '/v1/chat/completions',
  model: 'm',
  lines: 2,
  hops: 0,
  remoteInput: 'file-1',
  window: '24h',
  listFromMs: 1_000_000,
};
export const create = (provider: Provider) => provider.create({ ...JOB, inline: null }, send);
export const marker = { nightshift_job: JOB.jobId, nightshift_store: JOB.storeId };
export const batch = (id: string, changes: object = {}) => ({
  id,
  status: 'in_progress',
  created_at: 2_000,
  ...changes,
});
