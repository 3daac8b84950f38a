import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { runGateway } from '../../gateway/main';
import { loadConfig } from '../../platform/config';
import type { FlowPage, FlowPageBackend, FlowPagePool } from '../../platform/flow-page';
import { startLocalServer, type LocalServer, type Received } from '../inference/local-server';
import { freePort } from '../support/free-port';
import { until } from '../support/until';

/** Settings of a pool that has one request of one backend in flight at a time, so that all others wait. */
export const ONE_IN_FLIGHT = {
  request_queue_controller: {
    watermark_per_backend: 1,
    lower_bound_per_backend: 1,
    upper_bound_per_backend: 1,
  },
  bands: { ceilings: [1, 1, 1] },
};

/**
 * Settings of a probe by which a backend is away after one bad answer. The probe is patient: on a machine with other work,
 * connecting may take longer than the usual second, and the backend would be away too early, or for another reason.
 */
export const FALLS_AT_ONCE = { fall: 1, timeout: '30s' };

const cleanups: (() => Promise<unknown>)[] = [];

/** Closes something after the test. */
export function onClose(close: () => Promise<unknown>): void {
  cleanups.push(close);
}

/** Closes everything that a test opened, the newest first. */
export async function closeAll(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

export interface HeldRequest extends Received {
  readonly response: ServerResponse;
}

export interface Backend extends LocalServer {
  /** Requests that wait for `respond`, in the order in which they came. */
  readonly held: HeldRequest[];
  /** Answers the oldest request that waits. */
  respond(body?: unknown, status?: number): void;
  /** The status of `GET /health`; 0: it gets no answer. */
  health: number;
}

/**
 * A model server that is ready and answers when the test says so; by default each request waits. `atPort` is for one
 * that comes back.
 */
export async function startBackend(
  answer?: (request: Received, response: ServerResponse) => void,
  atPort = 0,
): Promise<Backend> {
  const held: HeldRequest[] = [];
  const state = { health: 200 };
  const onRequest = (request: Received, response: ServerResponse): void => {
    if (request.url !== '/health') {
      if (answer !== undefined) answer(request, response);
      else held.push({ ...request, response });
    } else if (state.health !== 0) response.writeHead(state.health).end();
  };
  const server = await startLocalServer(onRequest, undefined, atPort);
  cleanups.push(() => server.close());
  const backend = {
    ...server,
    held,
    respond: (body: unknown = ANSWER, status = 200): void => {
      const { response } = held.shift() ?? {};
      response?.writeHead(status, { 'content-type': 'application/json' });
      response?.end(JSON.stringify(body));
    },
  };
  return Object.defineProperty(backend, 'health', {
    get: () => state.health,
    set: (status: number) => void (state.health = status),
  }) as unknown as Backend;
}

export const ANSWER = {
  id: 'a',
  usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
};

export interface TestGateway {
  readonly url: string;
  readonly adminUrl: string;
  close(): Promise<void>;
  /** What `GET /admin/flow` says of the only pool. */
  flow(): Promise<FlowPool>;
  /** Bytes that are reserved for bodies that arrive. */
  receivingBytes(): Promise<number>;
  /** The value of one series; undefined if there is none. */
  metric(series: string): Promise<number | undefined>;
}

/** What `GET /admin/flow` says of a pool, with some members in short. */
export type FlowPool = Omit<FlowPagePool, 'backends'> & {
  readonly queued: Readonly<Record<'critical' | 'standard' | 'sheddable', number>>;
  readonly backends: readonly (FlowPageBackend & { readonly ready: boolean })[];
};

function shortened(pool: FlowPagePool): FlowPool {
  const { critical, standard, sheddable } = pool.bands;
  return {
    ...pool,
    queued: {
      critical: critical.queued,
      standard: standard.queued,
      sheddable: sheddable.queued,
    },
    backends: pool.backends.map((one) => ({ ...one, ready: one.state !== 'not_ready' })),
  };
}

/** A gateway before these backends, which serve the model `m`, when all of them that were started are ready. */
export async function startGateway(
  backends: readonly (Backend | { readonly url: string })[],
  settings: Record<string, unknown> = {},
  pool: Record<string, unknown> = {},
): Promise<TestGateway> {
  const { auth = {}, fairness = {}, tracing = {}, postgres = {}, ...gateway } = settings;
  const observabilityPort = await freePort();
  const config = loadConfig({
    env: {},
    needs: ['pools'],
    overrides: {
      auth,
      fairness,
      tracing,
      postgres,
      log: { level: 'error' },
      gateway: {
        port: 0,
        observability_port: observabilityPort,
        pools: {
          main: {
            models: ['m'],
            backends: backends.map(({ url }) => ({ url })),
            probe: { interval: '50ms' },
            ...pool,
          },
        },
        ...gateway,
      },
    },
  });
  const running = await runGateway(config);
  cleanups.push(() => running.close());
  const adminUrl = `http://127.0.0.1:${observabilityPort}`;
  const view = async () => (await (await fetch(`${adminUrl}/admin/flow`)).json()) as FlowPage;
  const flow = async () => shortened((await view()).pools[0]!);
  const receivingBytes = async () => (await view()).receiving_bytes;
  const areReady = async () =>
    (await flow()).backends.every(({ ready }, i) => ready || !('received' in (backends[i] ?? {})));
  await until(areReady, 5_000, 'backends');
  const metric = async (series: string) => {
    const text = await (await fetch(`${adminUrl}/metrics`)).text();
    const line = text.split('\n').find((one) => one.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
  return { url: running.url, adminUrl, close: () => running.close(), flow, receivingBytes, metric };
}

/** The body of an answer, as far as tests look at it. */
export interface Answer {
  readonly error?: { readonly code: string | null; readonly type: string };
}

export interface Exchange {
  /** Resolves with the head of the answer. */
  readonly head: Promise<IncomingMessage>;
  /** The pieces of the answer's body so far. */
  readonly chunks: string[];
  /** Status, headers and body of the whole answer. */
  readonly answer: Promise<{
    status: number;
    headers: IncomingMessage['headers'];
    text: string;
    json: () => Answer;
  }>;
  /** Statuses of interim answers. */
  readonly interim: number[];
  /** Closes the connection. */
  hangUp(): void;
}

/** Sends a chat completion for the model `m` on a connection of its own. */
export function ask(
  gateway: Pick<TestGateway, 'url'>,
  body: unknown = {},
  headers: Record<string, string> = {},
): Exchange {
  const text = Buffer.isBuffer(body)
    ? body
    : JSON.stringify({ model: 'm', messages: [], ...(body as object) });
  const chunks: string[] = [];
  const interim: number[] = [];
  const request = httpRequest(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', ...headers },
  });
  const head = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  request.on('information', ({ statusCode }) => interim.push(statusCode));
  const answer = head.then(async (response) => {
    for await (const chunk of response) chunks.push(String(chunk));
    const whole = chunks.join('');
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: whole,
      json: () => JSON.parse(whole) as Answer,
    };
  });
  // A request that a test gives up is not a failure of the test.
  answer.catch(() => undefined);
  request.end(text);
  const hangUp = (): void => void request.destroy();
  cleanups.push(async () => hangUp());
  return { head, chunks, answer, interim, hangUp };
}

/** Waits until so many requests wait in all bands. */
export async function untilQueued(gateway: TestGateway, count: number): Promise<void> {
  const isQueued = async () => {
    const { queued } = await gateway.flow();
    return queued.critical + queued.standard + queued.sheddable === count;
  };
  await until(isQueued, 5_000, `${count} waiting requests`, 5);
}

/** Waits until a backend has been given so many requests that it holds. */
export async function untilHeld(backend: Backend, count: number): Promise<void> {
  await until(() => backend.held.length === count, 5_000, `${count} requests at the backend`, 2);
}
