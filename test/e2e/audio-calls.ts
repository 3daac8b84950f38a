import { spawnSync } from 'node:child_process';
import { Metadata, credentials, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js';
import { openAudioClient, type AudioClient } from '../../inference/audio/audio-client';
import type {
  WireAudioFrame,
  WireBatchEvent,
  WireCancelReply,
  WireFileEvent,
  WireFileOptions,
  WireFilePart,
  WireHealthReply,
  WireSpeechChunk,
  WireStreamOptions,
  WireTranscript,
  WireTranscriptEvent,
} from '../../proto/audio-messages';

const CHUNK_BYTES = 256 * 1024;
/** The name of the engine's model. */
export const WHISPER = 'whisper-tiny.en';

/** A client that pings far more often than the gateway, so every test also checks that the engine permits it. */
export function audioClient(address: string): AudioClient {
  const pings = { 'grpc.keepalive_time_ms': 200, 'grpc.keepalive_permit_without_calls': 1 };
  return openAudioClient({ address, credentials: credentials.createInsecure() } as never, pings);
}

/** A call with a file: its events, and the failure with which it ended. */
export interface FileCall {
  readonly rpc: ClientDuplexStream<WireFilePart, WireFileEvent>;
  readonly deltas: string[];
  /** Rejects with the status if the call fails. */
  readonly result: Promise<WireTranscript>;
}

/** Starts a transcription. */
export function sendFile(
  client: AudioClient,
  recording: Buffer,
  options: Partial<WireFileOptions> = {},
): FileCall {
  const rpc = client.transcribeFile(new Metadata(), {});
  for (const part of partsOf(recording, options)) rpc.write(part);
  rpc.end();
  const deltas: string[] = [];
  rpc.on('data', ({ delta }: WireFileEvent) => delta && deltas.push(delta));
  const result = eventsOf<WireFileEvent>(rpc).then((events) => {
    const last = events.at(-1);
    if (last?.result === undefined) throw new Error('the last event is not the result');
    return last.result;
  });
  return { rpc, deltas, result };
}

/** Transcribes several recordings in one call. */
export function sendBatch(client: AudioClient, recordings: Buffer[]): Promise<WireBatchEvent[]> {
  const rpc = client.transcribeBatch(new Metadata(), {});
  recordings.forEach((recording, item) => {
    for (const part of partsOf(recording, {})) rpc.write({ item, part });
    rpc.write({ item, end: true });
  });
  rpc.end();
  return eventsOf(rpc);
}

/** Sends live audio in frames of 20 ms at 24 kHz, then what ends it. */
export function sendStream(
  client: AudioClient,
  audio: Buffer,
  { end, ...options }: Partial<WireStreamOptions> & { end: Partial<WireAudioFrame> },
): Promise<WireTranscriptEvent[]> {
  const rpc = client.transcribeStream(new Metadata(), {});
  const stream = { model: WHISPER, encoding: 'pcm16', sampleRateHz: 24_000, ...options };
  rpc.write({ options: stream } as WireAudioFrame);
  for (let at = 0; at < audio.length; at += 960) {
    rpc.write({ audio: audio.subarray(at, at + 960) });
  }
  rpc.write(end);
  rpc.end();
  return eventsOf(rpc);
}

/** Speaks a text. */
export async function speak(client: AudioClient, input: string, format: string): Promise<Buffer> {
  const request = { model: 'espeak-ng', input, voice: 'en-us', format, speed: 1 };
  const chunks = await eventsOf<WireSpeechChunk>(
    client.synthesize(request as never, new Metadata(), {}),
  );
  expect(chunks.at(-1)?.durationS).toBeGreaterThan(0);
  return Buffer.concat(chunks.map(({ audio }) => audio));
}

/** Converts a recording to AAC in MP4 with the engine's own Python. */
export function toM4a(python: string, wav: Buffer): Buffer {
  const script = `
import av, io, sys
target = io.BytesIO()
output = av.open(target, "w", format="mp4")
stream = output.add_stream("aac", rate=24000)
for frame in av.open(io.BytesIO(sys.stdin.buffer.read())).decode(audio=0):
    frame.pts = None
    output.mux(stream.encode(frame))
output.mux(stream.encode(None))
output.close()
sys.stdout.buffer.write(target.getvalue())`;
  const done = spawnSync(python, ['-c', script], { input: wav, maxBuffer: 1 << 26 });
  if (done.status !== 0) throw new Error(done.stderr.toString());
  return done.stdout;
}

export function health(client: AudioClient): Promise<WireHealthReply> {
  return unary((done) => client.health({}, new Metadata(), {}, done));
}

export function cancel(client: AudioClient, requestId: string): Promise<WireCancelReply> {
  const request = { requestId, sessionId: '' };
  return unary((done) => client.cancel(request, new Metadata(), {}, done));
}

function unary<T>(
  call: (done: (error: ServiceError | null, reply?: T) => void) => unknown,
): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, reply) => (error === null ? resolve(reply as T) : reject(error)));
  });
}

/** All events of a call. Rejects with its status. */
function eventsOf<T>(rpc: NodeJS.ReadableStream): Promise<T[]> {
  const events: T[] = [];
  return new Promise((resolve, reject) => {
    rpc.on('data', (event: T) => events.push(event));
    rpc.once('error', reject);
    rpc.once('end', () => resolve(events));
  });
}

function partsOf(recording: Buffer, options: Partial<WireFileOptions>): WireFilePart[] {
  const all = { model: WHISPER, task: 'TRANSCRIBE', ...options } as WireFileOptions;
  const parts: WireFilePart[] = [{ options: all }];
  for (let at = 0; at < recording.length; at += CHUNK_BYTES) {
    parts.push({ chunk: recording.subarray(at, at + CHUNK_BYTES) });
  }
  return parts;
}

/** Lower case, without punctuation, numbers as words. */
export function wordsOf(text: string): string {
  const words = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s]/gu, '')
    .trim();
  return words.replace(/\b10\b/g, 'ten').replace(/\s+/g, ' ');
}
