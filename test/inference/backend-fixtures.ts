import type { Backend, BackendOutcome } from '../../inference/backend';
import { createHttpBackend, type HttpBackendOptions } from '../../inference/http-backend';
import type { GatewayConfig } from '../../platform/config-schema';
import { gatewayOf, startLocalServer } from './local-server';
import type { Answer, LocalServer } from './local-server';

export const never = new AbortController().signal;
const closers: (() => Promise<void>)[] = [];

/** Closes everything that the functions of this file have opened. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

/** Registers a function that {@link closeAll} calls too. */
export function onClose(close: () => Promise<void>): void {
  closers.push(close);
}

/** A local server that replies with `answer`. */
export async function serve(answer: Answer): Promise<LocalServer> {
  const server = await startLocalServer(answer);
  closers.push(() => server.close());
  return server;
}

let httpClient: GatewayConfig['http_client'] = 'nightshift';

/** Lets {@link backendFor} use this client from now on. */
export function useHttpClient(name: GatewayConfig['http_client']): void {
  httpClient = name;
}

/** A backend for the server at `url`. */
export function backendFor(
  url: string,
  gateway: Partial<GatewayConfig> = {},
  options: Partial<HttpBackendOptions> = {},
): Backend {
  const backend = createHttpBackend(gatewayOf(url, { http_client: httpClient, ...gateway }), {
    secrets: { authorization: null, tls: {} },
    connections: 10,
    maxAnswerBytes: 1_000_000,
    ...options,
  });
  closers.push(() => backend.close());
  return backend;
}

/** Expects an outcome without an answer. */
export function expectFailure(outcome: BackendOutcome, reason: string): void {
  expect(outcome).toMatchObject({ kind: 'failure', reason });
}
