import OpenAI from 'openai';
import type { ResultLine } from '../support/stack';
import { resultLines, untilTerminal } from '../support/stack';

/** One request of a batch; `custom_id` is its place in the list unless named. */
export interface TestRequest {
  readonly customId?: string;
  readonly body: unknown;
}

export interface TestBatch {
  readonly endpoint: string;
  readonly completionWindow?: string;
}

/** Lines of an input file, one for each request. */
export function inputLines(endpoint: string, requests: readonly TestRequest[]): string {
  return requests
    .map(({ customId, body }, i) =>
      JSON.stringify({ custom_id: customId ?? `c-${i}`, method: 'POST', url: endpoint, body }),
    )
    .join('\n');
}

/** Uploads `text` and creates a batch of it. */
export async function createBatch(
  client: OpenAI,
  text: string | Buffer,
  { endpoint, completionWindow = '24h' }: TestBatch,
): Promise<OpenAI.Batches.Batch> {
  const file = await client.files.create({
    file: await OpenAI.toFile(Buffer.from(text), 'input.jsonl'),
    purpose: 'batch',
  });
  return client.batches.create({
    input_file_id: file.id,
    endpoint: endpoint as '/v1/chat/completions',
    completion_window: completionWindow as '24h',
  });
}

/** A batch that has ended, and the lines of its two files. */
export interface EndedBatch {
  readonly batch: OpenAI.Batches.Batch;
  readonly output: ResultLine[];
  readonly errors: ResultLine[];
}

/** Waits for the end and fetches both files. */
export async function outcomeOf(
  client: OpenAI,
  id: string,
  timeoutMs?: number,
): Promise<EndedBatch> {
  const batch = await untilTerminal(client, id, timeoutMs);
  return {
    batch,
    output: await resultLines(client, batch.output_file_id),
    errors: await resultLines(client, batch.error_file_id),
  };
}

/** A batch of these requests from upload to download. */
export async function runRequests(
  client: OpenAI,
  requests: readonly TestRequest[],
  batch: TestBatch,
): Promise<EndedBatch> {
  const created = await createBatch(client, inputLines(batch.endpoint, requests), batch);
  return outcomeOf(client, created.id);
}
