import type { AudioSample } from '../../platform/audio-metrics';
import type { AudioPool } from './audio-pool';
import type { SpoolRoom } from './spool-room';

/** What the gauges of audio show now. */
export function audioSample(
  pool: AudioPool,
  streams: number,
  spool: Pick<SpoolRoom, 'bytes' | 'maxBytes'>,
): AudioSample {
  const workers = pool.slots.workers.map(({ link, used, quarantined, free }) => ({
    worker: link.address,
    isReady: link.isReady,
    slots: { used: used.size, free, quarantined: quarantined.size },
  }));
  const { waiting, speaking } = pool;
  const { promoted } = pool.controller.stats();
  const { bytes: spoolBytes, maxBytes: spoolMaxBytes } = spool;
  return { waiting, promoted, speaking, streams, spoolBytes, spoolMaxBytes, workers };
}
