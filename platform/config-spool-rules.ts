import type { AudioConfig } from './config-audio';

const MAX_FILE_BYTES = 512 * 1024 ** 2;
const MAX_FILE = '512MiB';

/** The rules between the sizes of audio (docs/configuration.md#audio), with paths below `gateway`. */
export function audioSizeRules(
  audio: AudioConfig | undefined,
): [isBroken: boolean, path: string, message: string][] {
  if (audio === undefined) return [];
  const { max_file_bytes: fileBytes, spool } = audio;
  return [
    [fileBytes === 0, 'audio/max_file_bytes', 'must be at least 1'],
    [fileBytes > MAX_FILE_BYTES, 'audio/max_file_bytes', `must not exceed ${MAX_FILE}`],
    [
      spool.sheddable_bytes < fileBytes,
      'audio/spool/sheddable_bytes',
      'must be at least gateway.audio.max_file_bytes, because a larger recording of a batch could never be received',
    ],
    [
      spool.max_bytes < spool.sheddable_bytes + fileBytes,
      'audio/spool/max_bytes',
      'must be at least spool.sheddable_bytes and max_file_bytes together, so that batches leave room for one more recording',
    ],
  ];
}
