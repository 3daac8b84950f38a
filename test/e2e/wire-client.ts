import { type LocalServer, startLocalServer } from '../inference/local-server';
import { startStack, type TestStack } from '../support/stack';
import { until } from '../support/until';
import type { WireBatch } from './batch-shape';

export const CHAT = '/v1/chat/completions';
const LIMITS = { max_requests: 120, max_inputs: 20 };
const MAX_FILE_BYTES = 256 * 1024;
const TERMINAL = ['completed', 'failed', 'expired', 'cancelled'];

/** What a request asks of the model server. */
interface Asked {
  readonly delay_ms?: number;
  readonly status?: number;
  readonly answers?: unknown;
}

/** An answer of the API with its JSON body parsed. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: WireBatch & { readonly error?: Readonly<Record<string, unknown>> };
}

/** Plain HTTP calls to a whole stack with small limits, for the tenant `wire` unless named. */
export class WireClient {
  readonly stack: TestStack;
  readonly server: LocalServer;

  constructor(stack: TestStack, server: LocalServer) {
    this.stack = stack;
    this.server = server;
  }

  async send(
    method: string,
    path: string,
    { body, tenant = 'wire' }: { body?: unknown; tenant?: string } = {},
  ): Promise<WireAnswer> {
    const headers = { 'x-maas-username': tenant, 'content-type': 'application/json' };
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await this.stack.fetch(`${this.stack.baseUrl}${path}`, {
      method,
      headers,
      ...content,
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: JSON.parse(text) };
  }

  /** Uploads an input file and returns its id. */
  async upload(text: string, tenant = 'wire'): Promise<string> {
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([text]), 'in.jsonl');
    const headers = { 'x-maas-username': tenant };
    const init = { method: 'POST', body: form, headers };
    const answer = await this.stack.fetch(`${this.stack.baseUrl}/files`, init);
    const body = (await answer.json()) as { id: string; error?: unknown };
    if (answer.status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`);
    return body.id;
  }

  async get(id: string): Promise<WireBatch> {
    return (await this.send('GET', `/batches/${id}`)).body;
  }

  cancel(id: string): Promise<WireAnswer> {
    return this.send('POST', `/batches/${id}/cancel`);
  }

  /** Creates a batch of an uploaded file; `members` are added to the request. */
  async createOf(fileId: string, members: object = {}): Promise<WireBatch> {
    const body = { input_file_id: fileId, endpoint: CHAT, completion_window: '24h', ...members };
    const answer = await this.send('POST', '/batches', { body });
    expect([answer.status, answer.body.error]).toEqual([200, undefined]);
    return answer.body;
  }

  /** Uploads an input file and creates a batch of it. */
  async create(text: string, members: object = {}): Promise<WireBatch> {
    return this.createOf(await this.upload(text), members);
  }

  /** Every different answer to polls from now to the end. */
  async lifeOf(first: WireBatch): Promise<WireBatch[]> {
    const seen = [first];
    await until(
      async () => {
        const batch = await this.get(first.id);
        if (JSON.stringify(batch) !== JSON.stringify(seen.at(-1))) seen.push(batch);
        return TERMINAL.includes(String(batch['status']));
      },
      60_000,
      `the end of ${first.id}`,
      15,
    );
    return seen;
  }

  /** The last of them. */
  async endOf(first: WireBatch): Promise<WireBatch> {
    const seen = await this.lifeOf(first);
    return seen[seen.length - 1] ?? first;
  }

  async close(): Promise<void> {
    await this.stack.stop();
    this.stack.remove();
    await this.server.close();
  }
}

/** Starts the stack and a model server that answers as each request asks it to. */
export async function startWireClient(): Promise<WireClient> {
  const server = await startLocalServer(({ body }, response) => {
    const { delay_ms: delayMs = 0, status = 200, answers } = JSON.parse(body.toString()) as Asked;
    setTimeout(() => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(answers ?? { usage: { prompt_tokens: 2, completion_tokens: 1 } }),
      );
      // Long delays are for batches that a test stops: they must not keep the process alive.
    }, delayMs).unref();
  });
  const stack = await startStack({
    config: {
      global_inference_gateway: { url: server.url, request_timeout: '30s', max_retries: 0 },
      auth: { mode: 'header' },
      batch: { cancel_grace: '200ms', single_model_batches: true },
      limits: {
        ...LIMITS,
        max_file_bytes: MAX_FILE_BYTES,
        max_line_bytes: 32 * 1024,
        tenant: { max_enqueued_requests: 110 },
      },
      concurrency: { global: 64, per_model: 10 },
    },
  });
  return new WireClient(stack, server);
}

/** A line with changed members; undefined removes one. */
export function line(changes: object = {}, body: object = {}): string {
  return JSON.stringify({
    ...{ custom_id: 'a', method: 'POST', url: CHAT },
    body: { model: 'm', messages: [], ...body },
    ...changes,
  });
}

/** Lines with the ids `c-0`, `c-1` and so on. */
export function lines(count: number, body: object = {}): string {
  return Array.from({ length: count }, (_, i) => line({ custom_id: `c-${i}` }, body)).join('\n');
}
