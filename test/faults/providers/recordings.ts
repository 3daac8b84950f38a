import OpenAI from 'openai';
import { createBatch, inputLines } from '../../e2e/run-batch';

const ENDPOINT = '/v1/audio/transcriptions';
const FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json'];
const FILES = 4;

/** Uploads recordings, and creates a batch of `lines` lines that name them in turn, in all formats. */
export async function submitRecordings(
  client: OpenAI,
  model: string,
  lines: number,
): Promise<OpenAI.Batches.Batch> {
  const ids: string[] = [];
  for (let i = 0; i < FILES; i++) {
    const file = await OpenAI.toFile(Buffer.alloc(40_000, `recording ${i}`), `${i}.wav`);
    ids.push((await client.files.create({ file, purpose: 'user_data' })).id);
  }
  const requests = Array.from({ length: lines }, (_, i) => {
    const format = FORMATS[i % FORMATS.length];
    return { body: { model, file_id: ids[i % FILES], response_format: format } };
  });
  return createBatch(client, inputLines(ENDPOINT, requests), { endpoint: ENDPOINT });
}
