import { createReadStream } from 'node:fs';

const NEW_LINE = 0x0a;

/** The lines of a file, one in memory at a time. Only a line feed ends one. */
export async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end; (end = chunk.indexOf(NEW_LINE, start)) !== -1; start = end + 1) {
      yield Buffer.concat([...parts, chunk.subarray(start, end)]);
      parts = [];
    }
    parts.push(chunk.subarray(start));
  }
  yield Buffer.concat(parts);
}
