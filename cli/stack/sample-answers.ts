import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { shortened } from '../batches/human-format';

const ANSWER_CHARACTERS = 70;

/** The first `limit` lines of an output file, as rows of `custom_id` and the text of the answer. */
export async function sampleAnswers(file: string, limit: number): Promise<string[][]> {
  const rows: string[][] = [];
  const input = createReadStream(file);
  const lines = createInterface({ input, crlfDelay: Infinity });
  try {
    for await (const line of lines) {
      if (rows.push(rowOf(JSON.parse(line))) === limit) break;
    }
  } finally {
    lines.close();
    input.destroy();
  }
  return rows;
}

function rowOf(line: unknown): string[] {
  const body = valueAt(line, ['response', 'body']);
  return [textAt(line, ['custom_id']) ?? '', shortened(answerText(body), ANSWER_CHARACTERS)];
}

/** The text of a chat, completions or responses answer; the kind of object for other endpoints. */
function answerText(body: unknown): string {
  return (
    textAt(body, ['choices', 0, 'message', 'content']) ??
    textAt(body, ['choices', 0, 'text']) ??
    textAt(body, ['output', 0, 'content', 0, 'text']) ??
    textAt(body, ['object']) ??
    ''
  );
}

function textAt(value: unknown, path: readonly (string | number)[]): string | null {
  const found = valueAt(value, path);
  return typeof found === 'string' ? found : null;
}

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (at, step) =>
      typeof at === 'object' && at !== null
        ? (at as Readonly<Record<string | number, unknown>>)[step]
        : undefined,
    value,
  );
}
