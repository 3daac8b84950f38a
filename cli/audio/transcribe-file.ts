import { createReadStream } from 'node:fs';
import type OpenAI from 'openai';
import type { TranscriptionCreateParamsNonStreaming } from 'openai/resources/audio/transcriptions';
import type { ClientIo } from '../batches/client-io';
import { humanBytes } from '../batches/human-format';
import { openInput } from '../batches/input-file';
import type { Reporter } from '../batches/reporter';
import { askGateway } from './gateway-client';
import { transcriptText, type TranscriptFormat } from './transcript-format';

/** What is asked of a recording. */
export interface TranscriptWish {
  readonly model: string;
  readonly format: TranscriptFormat;
  readonly language?: string;
  readonly prompt?: string;
}

/** How one recording is sent at once. */
export interface LiveTranscription extends TranscriptWish {
  readonly client: OpenAI;
  readonly reporter: Reporter;
  /** Whether it goes before recordings that may wait. */
  readonly isRealtime: boolean;
  readonly signal: AbortSignal;
}

/** What a terminal must not take from a model: it would move the cursor or worse. */
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g;

/**
 * Transcribes one recording and returns the text of its answer. @throws invalid_request, unavailable
 */
export async function transcribeFile(path: string, options: LiveTranscription): Promise<string> {
  const { client, format, reporter } = options;
  const { bytes } = openInput(path);
  reporter.status(`transcribing ${path} (${humanBytes(bytes)})`);
  const answer = await askGateway(client, () =>
    client.audio.transcriptions.create(requestOf(path, options), callOf(options)),
  );
  reporter.clear();
  return transcriptText(answer, format);
}

/** The same, with the text on a terminal as it is recognized. */
export async function showTranscript(
  path: string,
  options: LiveTranscription,
  { stdout }: Pick<ClientIo, 'stdout'>,
): Promise<void> {
  const { client, reporter } = options;
  const { bytes } = openInput(path);
  reporter.status(`transcribing ${path} (${humanBytes(bytes)})`);
  const request = { ...requestOf(path, options), response_format: 'json', stream: true } as const;
  await askGateway(client, async () => {
    const events = await client.audio.transcriptions.create(request, callOf(options));
    for await (const event of events) {
      if (event.type !== 'transcript.text.delta') continue;
      reporter.clear();
      stdout.write(event.delta.replace(CONTROL, ' '));
    }
  });
  stdout.write('\n');
}

function requestOf(
  path: string,
  { model, format, language, prompt }: TranscriptWish,
): TranscriptionCreateParamsNonStreaming {
  return {
    ...{ model, response_format: format, file: createReadStream(path) },
    ...(language === undefined ? {} : { language }),
    ...(prompt === undefined ? {} : { prompt }),
  };
}

function callOf({ isRealtime, signal }: LiveTranscription) {
  const headers = isRealtime ? { 'x-gateway-inference-objective': 'realtime' } : {};
  return { signal, headers };
}
