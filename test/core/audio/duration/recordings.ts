import type { Container } from '../../../../core/audio/container';

/* Small recordings whose duration is known, made byte by byte. Their audio is noise. */

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function le32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function fill(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31) % 199;
  return bytes;
}

/** A WAV of 16 kHz, 16 bit, one channel. */
export function wav(
  seconds: number,
  { data = null as number | null, extra = Buffer.alloc(0) } = {},
) {
  const bytes = Math.round(seconds * 32_000);
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(16_000, 4);
  format.writeUInt32LE(32_000, 8);
  format.writeUInt16LE(2, 12);
  format.writeUInt16LE(16, 14);
  const chunks = [Buffer.from('WAVE'), Buffer.from('fmt '), le32(16), format, extra];
  const body = Buffer.concat([...chunks, Buffer.from('data'), le32(data ?? bytes), fill(bytes)]);
  return Buffer.concat([Buffer.from('RIFF'), le32(body.length), body]);
}

export function rf64(seconds: number): Buffer {
  const plain = wav(seconds, { data: 0xffffffff });
  const ds64 = Buffer.alloc(36);
  ds64.write('ds64', 0);
  ds64.writeUInt32LE(28, 4);
  ds64.writeUInt32LE(Math.round(seconds * 32_000), 16);
  return Buffer.concat([
    Buffer.from('RF64'),
    le32(0xffffffff),
    Buffer.from('WAVE'),
    ds64,
    plain.subarray(12),
  ]);
}

function streamInfo(seconds: number): Buffer {
  const rate = 44_100;
  const samples = Math.round(seconds * rate);
  const info = Buffer.alloc(34);
  info.writeUInt32BE(((rate << 12) | (1 << 9) | (15 << 4)) >>> 0, 10);
  info[13] = ((info[13] ?? 0) & 0xf0) | Math.floor(samples / 2 ** 32);
  info.writeUInt32BE(samples % 2 ** 32, 14);
  return info;
}

export function flac(seconds: number): Buffer {
  const header = Buffer.from([0x80, 0, 0, 34]);
  return Buffer.concat([Buffer.from('fLaC'), header, streamInfo(seconds), fill(seconds * 3_000)]);
}

function page(serial: number, granule: number, packet: Buffer): Buffer {
  const head = Buffer.alloc(27);
  head.write('OggS', 0);
  head.writeUInt32LE(granule % 2 ** 32, 6);
  head.writeUInt32LE(Math.floor(granule / 2 ** 32), 10);
  head.writeUInt32LE(serial, 14);
  const whole = Math.floor(packet.length / 255);
  const lacing = Buffer.concat([Buffer.alloc(whole, 255), Buffer.from([packet.length % 255])]);
  head[26] = lacing.length;
  return Buffer.concat([head, lacing, packet]);
}

/** Ogg with Opus, whose first 312 samples are skipped. */
export function opus(seconds: number): Buffer {
  const id = Buffer.alloc(60);
  id.write('OpusHead', 0);
  id.writeUInt16LE(312, 10);
  const last = Math.round(seconds * 48_000) + 312;
  const pages = [page(7, 0, id), page(7, Math.floor(last / 2), fill(seconds * 1_500))];
  // Another stream in the same file, and a page on which no packet ends.
  return Buffer.concat([...pages, page(7, last, fill(seconds * 1_500)), page(9, 5, fill(30))]);
}

export function vorbis(seconds: number): Buffer {
  const id = Buffer.alloc(60);
  id.write('\x01vorbis', 0, 'latin1');
  id.writeUInt32LE(44_100, 12);
  const last = Math.round(seconds * 44_100);
  return Buffer.concat([page(3, 0, id), page(3, last, fill(seconds * 3_000))]);
}

function box(type: string, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([u32(8 + body.length), Buffer.from(type), body]);
}

/** MP4 with the movie header at the beginning or, as most encoders write it, at the end. */
export function mp4(seconds: number, { isFirst = false, isLong = false } = {}): Buffer {
  const header = Buffer.alloc(isLong ? 112 : 100);
  if (isLong) {
    header[0] = 1;
    header.writeUInt32BE(1_000, 20);
    header.writeBigUInt64BE(BigInt(seconds * 1_000), 24);
  } else {
    header.writeUInt32BE(1_000, 12);
    header.writeUInt32BE(seconds * 1_000, 16);
  }
  const movie = box('moov', box('udta', fill(20)), box('mvhd', header));
  const media = box('mdat', fill(seconds * 3_000));
  return Buffer.concat([
    box('ftyp', Buffer.from('M4A ')),
    ...(isFirst ? [movie, media] : [media, movie]),
  ]);
}

/** MP3 of 44.1 kHz whose first frame counts the frames; `tag` is the length of an ID3v2 tag in front. */
export function mp3(seconds: number, { header = 'Xing', tag = 300 } = {}): Buffer {
  const frames = Math.round((seconds * 44_100) / 1_152);
  const frame = Buffer.alloc(417);
  frame.set([0xff, 0xfb, 0x90, 0x00]);
  if (header === 'VBRI') {
    frame.write('VBRI', 36);
    frame.writeUInt32BE(frames, 50);
  } else {
    frame.write(header, 36);
    frame.writeUInt32BE(1, 40);
    frame.writeUInt32BE(frames, 44);
  }
  const id3 = Buffer.alloc(10 + tag);
  id3.write('ID3', 0);
  id3.set([4, 0, 0, 0, 0, tag >> 7, tag & 0x7f], 3);
  return Buffer.concat([id3, frame, fill(seconds * 3_000)]);
}

function element(id: number[], ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const length = Buffer.alloc(4);
  length.writeUInt32BE((0x10000000 | body.length) >>> 0);
  return Buffer.concat([Buffer.from(id), length, body]);
}

export function webm(seconds: number): Buffer {
  const duration = Buffer.alloc(8);
  duration.writeDoubleBE(seconds * 1_000);
  const scale = element([0x2a, 0xd7, 0xb1], Buffer.from([0x0f, 0x42, 0x40]));
  const info = element([0x15, 0x49, 0xa9, 0x66], scale, element([0x44, 0x89], duration));
  // The length of a segment that is written as it is recorded is not known.
  const segment = Buffer.concat([
    Buffer.from([0x18, 0x53, 0x80, 0x67, 0x01]),
    Buffer.alloc(7, 0xff),
  ]);
  const seek = element([0x11, 0x4d, 0x9b, 0x74], fill(20));
  const header = element(
    [0x1a, 0x45, 0xdf, 0xa3],
    Buffer.from([0x42, 0x82, 0x84, 0x77, 0x65, 0x62, 0x6d]),
  );
  return Buffer.concat([header, segment, seek, info, fill(seconds * 3_000)]);
}

/** One recording of each kind, of 10 s. */
export const RECORDINGS: readonly (readonly [string, Container, Buffer])[] = [
  ['WAV', 'wav', wav(10)],
  ['RF64', 'wav', rf64(10)],
  ['FLAC', 'flac', flac(10)],
  ['Opus', 'ogg', opus(10)],
  ['Vorbis', 'ogg', vorbis(10)],
  ['M4A', 'mp4', mp4(10)],
  ['M4A with its header first', 'mp4', mp4(10, { isFirst: true })],
  ['M4A with long numbers', 'mp4', mp4(10, { isLong: true })],
  ['MP3 with Xing', 'mp3', mp3(10)],
  ['MP3 with Info', 'mp3', mp3(10, { header: 'Info', tag: 0 })],
  ['MP3 with VBRI', 'mp3', mp3(10, { header: 'VBRI' })],
  ['WebM', 'webm', webm(10)],
];
