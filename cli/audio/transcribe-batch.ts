import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Batch } from 'openai/resources/batches';
import { isJsonObject } from '../../core/openai/json-object';
import { exitCodeOf, EXIT, type ExitCode } from '../batches/exit-codes';
import { fetchResults } from '../batches/fetch-results';
import { printable } from '../batches/human-format';
import { openInput } from '../batches/input-file';
import { linesOf } from '../batches/lines-of';
import { saveFile } from '../batches/save-file';
import type { Session } from '../batches/session';
import { submitBatch } from '../batches/submit-batch';
import { uploadInput } from '../batches/upload';
import { watchBatch } from '../batches/watch-batch';
import { transcriptText } from './transcript-format';
import type { TranscriptWish } from './transcribe-file';

/** Where the transcript of a recording goes. */
export interface TranscriptTarget {
  readonly recording: string;
  readonly target: string;
}

/** How a batch of recordings is run. */
export interface BatchTranscription extends TranscriptWish {
  readonly session: Session;
  readonly targets: readonly TranscriptTarget[];
  readonly force: boolean;
  readonly patienceMs: number;
}

const ENDPOINT = '/v1/audio/transcriptions';
const WINDOW = '24h';

/**
 * Uploads the recordings, runs one durable batch over them, and writes each transcript to its file. Ctrl-C leaves the
 * batch running on the server.
 */
export async function transcribeBatch(options: BatchTranscription): Promise<ExitCode> {
  const { session, patienceMs, targets } = options;
  const { reporter, service } = session;
  for (const { recording } of targets) openInput(recording);
  const created = await createBatch(options);
  reporter.say(`created ${created.id}`);
  const { batch, isDetached } = await watchBatch(created, { ...session, patienceMs });
  if (isDetached) {
    const command = `nightshift results ${batch.id}${service.followUpFlags}`;
    reporter.say(`${batch.id} continues; when it has ended, its transcripts are in: ${command}`);
    return EXIT.interrupted;
  }
  const written = await writeTranscripts(batch, options);
  reporter.say(`wrote ${written} of ${targets.length} transcripts`);
  return exitCodeOf(batch);
}

async function createBatch(options: BatchTranscription): Promise<Batch> {
  const { session, targets, model, format, language, prompt } = options;
  const lines: string[] = [];
  for (const [index, { recording }] of targets.entries()) {
    const fileId = await uploadInput({
      ...session,
      input: openInput(recording),
      purpose: 'user_data',
    });
    const body = { model, file_id: fileId, response_format: format, language, prompt };
    lines.push(JSON.stringify({ custom_id: String(index), method: 'POST', url: ENDPOINT, body }));
  }
  return inFolder(async (folder) => {
    const input = join(folder, 'recordings.jsonl');
    await writeFile(input, `${lines.join('\n')}\n`);
    return submitBatch(input, { endpoint: ENDPOINT, window: WINDOW }, session);
  });
}

async function writeTranscripts(batch: Batch, options: BatchTranscription): Promise<number> {
  const { session, targets, format, force } = options;
  return inFolder(async (folder) => {
    const files = { output: join(folder, 'output.jsonl'), errors: join(folder, 'errors.jsonl') };
    const fetched = { targets: { ...files, audio: null }, force: true };
    const { output, errors } = await fetchResults(batch, { ...session, ...fetched });
    let written = 0;
    for await (const [index, answer] of answersIn(output === null ? null : files.output)) {
      const { target } = targets[index] ?? {};
      if (target === undefined) continue;
      const save = { target, force, stdout: new PassThrough() };
      await saveFile(save, async (sink) => void sink.write(transcriptText(answer.body, format)));
      written++;
    }
    for await (const [index, { message }] of answersIn(errors === null ? null : files.errors)) {
      session.reporter.say(`${targets[index]?.recording ?? index}: ${printable(message)}`);
    }
    return written;
  });
}

/** Result lines as index of the recording and answer. */
async function* answersIn(
  path: string | null,
): AsyncGenerator<readonly [number, { readonly body: unknown; readonly message: string }]> {
  if (path === null) return;
  for await (const line of linesOf(path)) {
    if (line.length === 0) continue;
    const { custom_id: id, response, error } = objectOf(JSON.parse(line.toString('utf8')));
    const { body } = objectOf(response);
    const { message } = objectOf(error ?? objectOf(body)['error']);
    yield [Number(id), { body, message: String(message) }];
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'nightshift-audio-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
