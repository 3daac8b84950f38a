import type OpenAI from 'openai';
import { resultLines, untilTerminal } from '../support/stack';

/**
 * Waits for the end of a batch of {@link chatLines} and expects that it has completed, with every line once
 * and in input order in its output file.
 */
export async function expectCompleted(
  client: OpenAI,
  id: string,
  { lines, timeoutMs }: { lines: number; timeoutMs?: number },
): Promise<void> {
  const done = await untilTerminal(client, id, timeoutMs);
  expect(done).toMatchObject({
    status: 'completed',
    request_counts: { total: lines, completed: lines, failed: 0 },
    error_file_id: null,
  });
  const results = await resultLines(client, done.output_file_id);
  expect(results.map((line) => line.custom_id)).toEqual(
    Array.from({ length: lines }, (_, i) => `c-${i}`),
  );
}
