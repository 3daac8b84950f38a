/** A format of recordings that OpenAI's routes take. */
export type Container = 'flac' | 'mp3' | 'mp4' | 'ogg' | 'wav' | 'webm';

/** How many bytes of the beginning of a recording {@link containerOf} needs. */
export const CONTAINER_BYTES = 64;

/** Media types by container. */
export const CONTENT_TYPES: Readonly<Record<Container, string>> = {
  flac: 'audio/flac',
  mp3: 'audio/mpeg',
  mp4: 'audio/mp4',
  ogg: 'audio/ogg',
  wav: 'audio/wav',
  webm: 'audio/webm',
};

/** The container of a recording by its first bytes; null if it is none that OpenAI's routes take. */
export function containerOf(head: Uint8Array): Container | null {
  const at = (from: number, to: number) => String.fromCharCode(...head.subarray(from, to));
  if (at(0, 4) === 'fLaC') return 'flac';
  if (at(0, 4) === 'OggS') return 'ogg';
  if ((at(0, 4) === 'RIFF' || at(0, 4) === 'RF64') && at(8, 12) === 'WAVE') return 'wav';
  if (at(4, 8) === 'ftyp') return 'mp4';
  if (at(0, 4) === '\x1aE\xdf\xa3') return 'webm';
  if (at(0, 3) === 'ID3' || isMp3Frame(head)) return 'mp3';
  return null;
}

/** A frame header of MPEG audio, layer I to III, without reserved values. */
function isMp3Frame([sync = 0, kind = 0, rates = 0]: Uint8Array): boolean {
  if (sync !== 0xff || (kind & 0xe0) !== 0xe0) return false;
  const isReserved = (kind & 0x18) === 0x08 || (kind & 0x06) === 0;
  return !isReserved && (rates & 0xf0) !== 0xf0 && (rates & 0x0c) !== 0x0c;
}
