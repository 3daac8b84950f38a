import { isJsonObject } from '../../core/openai/json-object';
import type { EncodedLine, JobInput, LineToEncode, UploadOptions } from '../provider';
import { readAudioRequest, type AudioSource } from './audio-request';
import { extensionOf, recordingName } from './recording-name';

/** A line of the staged input of a job that has recordings. */
export interface StagedRecording {
  /** The source of the audio. */
  readonly source: AudioSource;
  /** The language in the provider's words; null to recognise it. */
  readonly language: string | null;
  readonly wireId: string;
  readonly view: Parameters<typeof recordingName>[0]['view'];
}

/** A recording that is ready to be uploaded. */
export interface Recording {
  /** See {@link recordingName}. */
  readonly name: string;
  readonly language: string | null;
  readonly input: JobInput;
}

/** Stands for the language that the recogniser is to identify. */
export const ANY_LANGUAGE = 'any';

/** Why a job cannot be uploaded: a line names a file that is gone. */
export class MissingRecording extends Error {}

/** The provider's word for a language; undefined if it recognises no such language. */
export type LanguageOf = (language: string) => string | undefined;

/** Encodes a line with a recording. The lines of a job have one language, because a create states it once. */
export function encodeRecording(
  { wireId, body, translation }: LineToEncode,
  languageOf: LanguageOf,
): EncodedLine {
  const reading = readAudioRequest(body, translation.dropParams);
  if (reading.kind === 'refused') return reading;
  const { source, language, view } = reading.request;
  const word = language === null ? null : languageOf(language);
  if (word === undefined) {
    const message = `\`language\` is one that the provider does not recognise.`;
    return { kind: 'refused', param: 'language', message };
  }
  const staged: StagedRecording = { source, language: word, wireId, view };
  const bytes = Buffer.from(JSON.stringify(staged));
  return { kind: 'line', bytes, common: word ?? ANY_LANGUAGE };
}

/** Reads the staged input of a job. It has few lines, and is in memory as a whole. */
export async function readStaged(input: JobInput): Promise<readonly StagedRecording[]> {
  const pieces: Uint8Array[] = [];
  for await (const piece of input.open()) pieces.push(piece);
  const text = Buffer.concat(pieces).toString('utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => stagedOf(JSON.parse(line)));
}

/** Opens the audio of a staged line. @throws MissingRecording if its file does not exist any more */
export async function openRecording(
  { source, language, wireId, view }: StagedRecording,
  { openFile }: Pick<UploadOptions, 'openFile'>,
): Promise<Recording> {
  if (source.kind === 'data') {
    const bytes = Buffer.from(source.base64, 'base64');
    const name = recordingName({ wireId, view, extension: extensionOf(source.filename) });
    const input = { bytes: bytes.length, open: () => onePiece(bytes) };
    return { name, language, input };
  }
  const file = await openFile(source.fileId);
  if (file === null) throw new MissingRecording(`there is no file ${source.fileId}`);
  const name = recordingName({ wireId, view, extension: extensionOf(file.filename) });
  return { name, language, input: file };
}

async function* onePiece(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function stagedOf(value: unknown): StagedRecording {
  if (!isJsonObject(value)) throw new TypeError('a staged line is not an object');
  return value as unknown as StagedRecording;
}
