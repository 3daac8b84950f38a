import type { ServerResponse } from 'node:http';
import { startLocalServer, type Received } from '../inference/local-server';
import { startSimulator } from '../../simulator/main';

/** A simulated provider that quotes the key of its callers in what it says about failures. */
export interface QuotingProvider {
  /** As in `providers.url`, of type `openai`. */
  readonly url: string;
  /** What it was sent, oldest first. */
  readonly received: readonly Received[];
  /** How many of the next calls fail, with the key in their error. */
  failNext(calls: number): void;
  /** From now on each job fails as a whole, with the key in its error. */
  failJobs(): void;
  close(): Promise<void>;
}

/** Starts a {@link QuotingProvider}. */
export async function startQuotingProvider(): Promise<QuotingProvider> {
  const simulator = await startSimulator({ port: 0 });
  let failures = 0;
  let failsJobs = false;
  const answer = async (request: Received, response: ServerResponse): Promise<void> => {
    const quote = `Incorrect API key provided: ${request.headers.authorization}.`;
    if (failures > 0) {
      failures--;
      const error = { message: quote, type: 'server_error', code: null, param: null };
      return reply(response, 500, { error });
    }
    const { status, json } = await pass(simulator.url, request);
    const isBatch = (json as { object?: string }).object === 'batch' && request.method === 'GET';
    if (!isBatch || !failsJobs) return reply(response, status, json);
    const errors = { object: 'list', data: [{ code: 'invalid_key', message: quote }] };
    const noFiles = { output_file_id: null, error_file_id: null };
    return reply(response, status, { ...(json as object), ...noFiles, status: 'failed', errors });
  };
  const server = await startLocalServer((request, response) => void answer(request, response));
  return {
    url: `${server.url}/providers/openai/v1`,
    received: server.received,
    failNext: (calls) => (failures = calls),
    failJobs: () => (failsJobs = true),
    close: async () => {
      await server.close();
      await simulator.close();
    },
  };
}

/** Has the simulator answer. What is not JSON comes back as text. */
async function pass(
  to: string,
  { method, url, headers, body }: Received,
): Promise<{ status: number; json: unknown }> {
  const answer = await fetch(to + url, {
    method,
    headers: {
      authorization: headers.authorization ?? '',
      ...(headers['content-type'] === undefined ? {} : { 'content-type': headers['content-type'] }),
    },
    body: body.length === 0 ? null : new Uint8Array(body),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('application/json') === true;
  return { status: answer.status, json: isJson ? JSON.parse(text) : text };
}

function reply(response: ServerResponse, status: number, json: unknown): void {
  const isText = typeof json === 'string';
  const type = isText ? 'application/octet-stream' : 'application/json';
  response.writeHead(status, { 'content-type': type });
  response.end(isText ? json : JSON.stringify(json));
}
