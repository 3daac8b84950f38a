import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import OpenAI, { toFile } from 'openai';
import { packageRoot } from '../../platform/package-root';
import { type LocalServer, startLocalServer } from '../inference/local-server';
import { startStack, type TestStack } from '../support/stack';

/** A whole stack with API keys, clients of its tenants, and the model server behind it. */
export interface ContractStack {
  readonly baseUrl: string;
  readonly server: LocalServer;
  /** Every answer that a client got. */
  readonly exchanges: { readonly status: number }[];
  /** A new API key of a tenant, from the command that operators use. */
  keyOf(tenant: string): string;
  /** A client of a tenant, with a key of its own unless one is given. */
  clientOf(tenant: string, apiKey?: string): OpenAI;
  close(): Promise<void>;
}

/** What a request asks of the model server. */
export interface Asked {
  readonly delay_ms?: number;
  /** Answered only after some client got a 429. */
  readonly after_429?: boolean;
  readonly fail?: boolean;
  readonly tag?: string;
}

export const CHAT = '/v1/chat/completions';

/** What the model server answers. */
export const ANSWER = {
  id: 'x',
  model: 'm',
  choices: [],
  usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
};

export async function startContractStack(): Promise<ContractStack> {
  const exchanges: { status: number }[] = [];
  const server = await startModelServer(() => exchanges.some(({ status }) => status === 429));
  const stack = await startStack({
    config: {
      global_inference_gateway: { url: server.url, request_timeout: '30s', max_retries: 0 },
      auth: { mode: 'api_key' },
      batch: { cancel_grace: '200ms' },
      limits: { tenant: { max_batches: 5 } },
      concurrency: { global: 64, per_model: 20 },
      pass_through_headers: ['X-Team'],
    },
  });
  const keyOf = (tenant: string) => makeKey(stack, tenant);
  return {
    baseUrl: stack.baseUrl,
    server,
    exchanges,
    keyOf,
    clientOf: (tenant, apiKey = keyOf(tenant)) =>
      new OpenAI({
        baseURL: stack.baseUrl,
        apiKey,
        fetch: async (url, init) => {
          const answer = await stack.fetch(url, init);
          exchanges.push({ status: answer.status });
          return answer;
        },
      }),
    close: async () => {
      await stack.stop();
      stack.remove();
      await server.close();
    },
  };
}

function startModelServer(isBusyTold: () => boolean): Promise<LocalServer> {
  return startLocalServer(({ body }, response) => {
    const asked = JSON.parse(body.toString()) as Asked;
    const answer = (): void => {
      if (asked.after_429 === true && !isBusyTold()) return later(20);
      response.writeHead(asked.fail === true ? 400 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(asked.fail === true ? { error: { message: 'no' } } : ANSWER));
    };
    // Long delays are for batches that a test cancels: they must not keep the process alive.
    const later = (ms: number): void => void setTimeout(answer, ms).unref();
    later(asked.delay_ms ?? 0);
  });
}

function makeKey(stack: TestStack, tenant: string): string {
  const cli = join(packageRoot(), 'cli', 'nightshift.js');
  const args = [cli, 'keys', 'create', '--tenant', tenant, '--data-dir', stack.dataDir];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (!stdout.startsWith('nsk_')) throw new Error(`no key was made: ${stderr}`);
  return stdout.trim();
}

/** An input file with a line for each; ids are `c-0`, `c-1` and so on. */
export function text(lines: readonly Asked[]): string {
  return lines
    .map((asked, i) => {
      const body = { model: 'm', messages: [], ...asked };
      return `${line({ custom_id: `c-${i}`, body })}\n`;
    })
    .join('');
}

/** An input file of `count` equal lines. */
export function many(count: number, asked: Asked): string {
  return text(Array.from({ length: count }, () => asked));
}

/** A line with changed members; undefined removes one. */
export function line(changes: Record<string, unknown>): string {
  return JSON.stringify({
    ...{ custom_id: 'a', method: 'POST', url: CHAT, body: { model: 'm', messages: [] } },
    ...changes,
  });
}

export async function uploadBy(
  client: OpenAI,
  content: string,
  name = 'in.jsonl',
): Promise<OpenAI.FileObject> {
  return client.files.create({ file: await toFile(Buffer.from(content), name), purpose: 'batch' });
}

export async function createBy(
  client: OpenAI,
  content: string,
  window = '24h',
): Promise<OpenAI.Batch> {
  return client.batches.create({
    input_file_id: (await uploadBy(client, content)).id,
    endpoint: CHAT,
    completion_window: window as '24h',
  });
}

/** The error of a call that must fail. */
export function rejection(call: Promise<unknown>): Promise<unknown> {
  return call.catch((reason: unknown) => reason);
}
