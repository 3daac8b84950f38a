import type { Container } from '../container';
import { flacDuration } from './flac';
import { mp3Duration } from './mp3';
import { mp4Duration } from './mp4';
import { oggDuration } from './ogg';
import { boundedProbe, type DurationProbe } from './probe';
import { wavDuration } from './wav';
import { webmDuration } from './webm';

const PROBES: Readonly<Record<Container, (size: number) => DurationProbe>> = {
  flac: flacDuration,
  mp3: mp3Duration,
  mp4: mp4Duration,
  ogg: oggDuration,
  wav: wavDuration,
  webm: webmDuration,
};

/**
 * Looks for the duration that the container of a recording states, in at most 64 reads and 1 MiB. Whatever the bytes
 * are, it ends, and what it returns is possible for a recording of `size` bytes
 * (docs/design/audio-scheduling.md#deadlines).
 */
export function probeDuration(container: Container, size: number): DurationProbe {
  return boundedProbe(PROBES[container](size), size);
}
