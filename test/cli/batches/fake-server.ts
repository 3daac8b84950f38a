import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the fake server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/**
 * What the fake server does with a request instead of answering like OpenAI: it sends another answer, no
 * answer (`break`, `hang`), or an answer that ends after some bytes (`cut`).
 */
export type Reaction = { status: number; body?: unknown; raw?: string } | 'break' | 'hang' | 'cut';

export interface FakeServer {
  readonly url: string;
  readonly seen: SeenRequest[];
  /** Changes of the batch. Each retrieve shows the next step; the last step stays. */
  script: Record<string, unknown>[];
  /** The batch as the last step left it. */
  batch: Record<string, unknown>;
  readonly files: Map<string, string>;
  /** Jobs of the batch at providers; null for a server that is not a Nightshift. */
  jobs: readonly object[] | null;
  /** Asked before every answer. */
  react: (request: SeenRequest) => Reaction | null;
  /** Steps to play after a cancel. */
  afterCancel: Record<string, unknown>[];
  count(method: string, path: RegExp): number;
  close(): Promise<void>;
}

export const BATCH_ID = 'batch_00000000000000000000000000000001';

/** A batch object with every key, as `POST /batches` answers. */
export function batchObject(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: BATCH_ID,
    object: 'batch',
    endpoint: '/v1/chat/completions',
    input_file_id: 'file-input',
    completion_window: '24h',
    model: null,
    errors: null,
    status: 'validating',
    output_file_id: null,
    error_file_id: null,
    created_at: 1_700_000_000,
    expires_at: 1_700_086_400,
    request_counts: { total: 0, completed: 0, failed: 0 },
    usage: {
      input_tokens: 0,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 0,
    },
    metadata: null,
    ...changes,
  };
}

/** A Files and Batches API of one batch, which plays a script. */
export async function startFakeServer(): Promise<FakeServer> {
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const seen = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body,
      };
      fake.seen.push(seen);
      const reaction = fake.react(seen);
      if (reaction === 'break') response.destroy();
      else if (reaction === 'hang') return;
      else if (reaction === 'cut') cutOff(response);
      else if (reaction !== null) send(response, reaction);
      else send(response, answerOf(fake, seen));
    });
  });
  const fake: FakeServer = {
    url: '',
    batch: batchObject(),
    seen: [],
    script: [],
    files: new Map(),
    jobs: null,
    react: () => null,
    afterCancel: [],
    count: (method, path) =>
      fake.seen.filter((one) => one.method === method && path.test(one.path)).length,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(fake, { url: `http://127.0.0.1:${port}/v1` });
}

type FakeAnswer = Exclude<Reaction, string>;

/** What OpenAI would answer. */
function answerOf(fake: FakeServer, { method, path }: SeenRequest): FakeAnswer {
  const { pathname, searchParams } = new URL(path, 'http://x');
  const content = /^\/v1\/files\/(.+)\/content$/.exec(pathname)?.[1];
  if (content !== undefined) {
    const raw = fake.files.get(content);
    return raw === undefined ? openaiError(404, 'No such File object: x') : { status: 200, raw };
  }
  if (method === 'POST' && pathname === '/v1/files') {
    return { status: 200, body: { id: 'file-input', object: 'file' } };
  }
  if (method === 'POST' && pathname === '/v1/batches') return { status: 200, body: fake.batch };
  if (method === 'GET' && pathname === '/v1/batches') {
    const data = Array.from({ length: Number(searchParams.get('limit')) }, (_, index) =>
      batchObject({ id: `batch_${index}` }),
    );
    return { status: 200, body: { object: 'list', data, has_more: true } };
  }
  if (pathname === `/v1/batches/${BATCH_ID}/cancel`) {
    fake.script = fake.afterCancel;
    fake.batch = { ...fake.batch, status: 'cancelling' };
    return { status: 200, body: fake.batch };
  }
  if (fake.jobs !== null && /^\/v1\/nightshift\/batches\/batch_\d+\/jobs$/.test(pathname)) {
    return { status: 200, body: { object: 'list', data: fake.jobs, has_more: false } };
  }
  if (pathname === `/v1/batches/${BATCH_ID}`) return { status: 200, body: nextStep(fake) };
  return openaiError(404, `No batch found with id '${pathname.split('/').at(-1)}'.`);
}

/** The batch after the next step of the script. */
function nextStep(fake: FakeServer): Record<string, unknown> {
  const [next] = fake.script.length > 1 ? fake.script.splice(0, 1) : fake.script;
  fake.batch = { ...fake.batch, ...next };
  return fake.batch;
}

/** An error answer with OpenAI's body. */
export function openaiError(
  status: number,
  message: string,
  code: string | null = null,
): { status: number; body: unknown } {
  return { status, body: { error: { message, type: 'invalid_request_error', param: null, code } } };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function send(
  response: ServerResponse,
  { status, body, raw }: { status: number; body?: unknown; raw?: string },
): void {
  const text = raw ?? JSON.stringify(body);
  response.writeHead(status, {
    'content-type': raw === undefined ? 'application/json' : 'application/octet-stream',
    'content-length': Buffer.byteLength(text),
    'x-should-retry': 'false',
  });
  response.end(text);
}

function cutOff(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': 1_000 });
  response.write('{"id":"half', () => response.destroy());
}
