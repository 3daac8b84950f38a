import type { AudioSample } from '../../platform/audio-metrics';
import type { AudioPool } from './audio-pool';

/** What the gauges of audio show now. */
export function audioSample(pool: AudioPool, streams: number, spoolBytes = 0): AudioSample {
  const workers = pool.slots.workers.map(({ link, used, quarantined, free }) => ({
    worker: link.address,
    isReady: link.isReady,
    slots: { used: used.size, free, quarantined: quarantined.size },
  }));
  const { waiting, speaking } = pool;
  const { promoted } = pool.controller.stats();
  return { waiting, promoted, speaking, streams, spoolBytes, workers };
}
