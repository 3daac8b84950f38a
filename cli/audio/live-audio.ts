import { createReadStream } from 'node:fs';
import { NightshiftError } from '../../core/errors';

/** Audio of one channel that is read piece by piece. */
export interface LiveAudio {
  /** As in `audio.input.format` of a session. */
  readonly format: { readonly type: string; readonly rate?: number };
  readonly bytesPerSec: number;
  /** Bytes of a sample. */
  readonly sampleBytes: number;
  /** Pieces of any length. */
  readonly pieces: AsyncIterable<Buffer>;
}

/** What a WAV header says. */
interface WavFormat {
  readonly code: number;
  readonly channels: number;
  readonly rate: number;
  readonly bits: number;
}

const CODES = { pcm: 1, alaw: 6, mulaw: 7, extensible: 0xfffe };
/** Where the audio of a WAV file must begin. */
const MAX_HEADER_BYTES = 1024 * 1024;

/**
 * Opens a WAV file, or raw 16-bit PCM of `rawRate` samples per second; `-` is standard input. @throws invalid_request if
 * it cannot be read or has another encoding
 */
export async function openLiveAudio(path: string, rawRate: number): Promise<LiveAudio> {
  const input: AsyncIterable<Buffer> = path === '-' ? process.stdin : createReadStream(path);
  const source = input[Symbol.asyncIterator]();
  const first = await headOf(source, 12, path);
  if (first.toString('latin1', 0, 4) !== 'RIFF') return pcm(rawRate, [first], source);
  let head = first;
  for (;;) {
    const found = dataOf(head);
    if (found !== null) return wavAudio(found.format, head.subarray(found.at), source);
    const next = await source.next();
    if (next.done === true || head.length > MAX_HEADER_BYTES) throw wrong(`${path} has no audio.`);
    head = Buffer.concat([head, next.value]);
  }
}

async function headOf(source: AsyncIterator<Buffer>, least: number, path: string): Promise<Buffer> {
  let head = Buffer.alloc(0);
  while (head.length < least) {
    const next = await source.next().catch((error: NodeJS.ErrnoException) => {
      throw wrong(`${path} cannot be read (${error.code ?? error.message}).`);
    });
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  return head;
}

/** Format and beginning of the audio; null if more of the file is needed. */
function dataOf(head: Buffer): { readonly format: WavFormat; readonly at: number } | null {
  let format: WavFormat | null = null;
  for (let at = 12; at + 8 <= head.length;) {
    const name = head.toString('latin1', at, at + 4);
    const size = head.readUInt32LE(at + 4);
    const begin = at + 8;
    if (name === 'data') {
      if (format === null) throw wrong('The WAV file does not say how it is encoded.');
      return { format, at: begin };
    }
    if (name === 'fmt ' && size >= 16 && begin + size <= head.length) {
      format = formatOf(head.subarray(begin, begin + size));
    }
    at = begin + size + (size % 2);
  }
  return null;
}

function formatOf(chunk: Buffer): WavFormat {
  const code = chunk.readUInt16LE(0);
  const isExtended = code === CODES.extensible && chunk.length >= 26;
  return {
    code: isExtended ? chunk.readUInt16LE(24) : code,
    channels: chunk.readUInt16LE(2),
    rate: chunk.readUInt32LE(4),
    bits: chunk.readUInt16LE(14),
  };
}

function wavAudio(format: WavFormat, rest: Buffer, source: AsyncIterator<Buffer>): LiveAudio {
  const { code, channels, rate, bits } = format;
  const isPhone = (code === CODES.alaw || code === CODES.mulaw) && bits === 8 && rate === 8_000;
  if (channels !== 1 || !(isPhone || (code === CODES.pcm && bits === 16))) {
    throw wrong(
      `The WAV file has ${channels} channels of ${bits} bits in format ${code}. Live audio needs one channel of 16-bit PCM: ffmpeg -i FILE -ac 1 -c:a pcm_s16le OUT.wav`,
    );
  }
  if (!isPhone) return pcm(rate, [rest], source);
  const type = code === CODES.alaw ? 'audio/pcma' : 'audio/pcmu';
  const pieces = joined([rest], source);
  return { format: { type }, bytesPerSec: rate, sampleBytes: 1, pieces };
}

function pcm(rate: number, first: readonly Buffer[], source: AsyncIterator<Buffer>): LiveAudio {
  const format = { type: 'audio/pcm', rate };
  return { format, bytesPerSec: 2 * rate, sampleBytes: 2, pieces: joined(first, source) };
}

async function* joined(
  first: readonly Buffer[],
  source: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer> {
  for (const piece of first) if (piece.length > 0) yield piece;
  for (;;) {
    const next = await source.next();
    if (next.done === true) return;
    yield next.value;
  }
}

function wrong(message: string): NightshiftError {
  return new NightshiftError('invalid_request', message);
}
