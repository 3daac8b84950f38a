import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { isJsonObject } from '../../core/openai/json-object';
import type { Interrupts } from './interrupts';
import { linesOf } from './lines-of';
import { makeFolder } from './make-folder';
import { saveFile } from './save-file';
import { SpeechNames } from './speech-names';

/** Where speech is unpacked to. */
export interface UnpackOptions {
  readonly dir: string;
  readonly force: boolean;
  readonly interrupts: Pick<Interrupts, 'pending'>;
}

/** What was unpacked. */
export interface UnpackedAudio {
  readonly dir: string;
  readonly files: number;
  readonly bytes: number;
}

interface Speech {
  readonly customId: string;
  readonly format: string;
  readonly audio: Buffer;
}

/** Lines without it are not parsed. */
const MARK = Buffer.from('"object":"audio.speech"');

/**
 * Writes each line of an output file that holds speech to a file of its own (docs/design/recordings.md#unpacked-speech).
 * An interrupt ends it after the file that is being written.
 *
 * @throws invalid_request if a file exists and `force` is false, or cannot be written
 */
export async function unpackAudio(
  outputFile: string,
  { dir, force, interrupts }: UnpackOptions,
): Promise<UnpackedAudio> {
  await makeFolder(dir, '--audio');
  const names = new SpeechNames();
  let files = 0;
  let bytes = 0;
  for await (const line of linesOf(outputFile)) {
    if (interrupts.pending !== null) break;
    const speech = speechIn(line);
    if (speech === null) continue;
    const { customId, format, audio } = speech;
    const target = join(dir, names.next(customId, format));
    await saveFile({ target, force, stdout: new PassThrough() }, async (sink) => {
      sink.write(audio);
    });
    files++;
    bytes += audio.length;
  }
  return { dir, files, bytes };
}

function speechIn(line: Buffer): Speech | null {
  if (!line.includes(MARK)) return null;
  const { custom_id: customId, response } = objectIn(parsed(line));
  const { object, format, audio } = objectIn(objectIn(response)['body']);
  if (object !== 'audio.speech' || typeof audio !== 'string') return null;
  return {
    ...{ customId: String(customId), format: String(format) },
    audio: Buffer.from(audio, 'base64'),
  };
}

/** A result line, of which the model server may have written any JSON; null if it cannot be read. */
function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'));
  } catch {
    return null;
  }
}

function objectIn(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}
