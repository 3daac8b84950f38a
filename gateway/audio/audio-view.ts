import type {
  AudioPage,
  AudioPageModel,
  AudioPageWaiting,
  AudioPageWorker,
} from '../../platform/audio-page';
import type { WireModel } from '../../proto/audio-messages';
import type { AudioPool } from './audio-pool';
import type { StreamTable } from './realtime/stream-table';
import type { SchedulerPriority } from './pooled-job';
import type { WorkerSlots } from './slot-table';

/** What the page shows. */
export interface AudioViewParts {
  readonly pool: Pick<AudioPool, 'slots' | 'waiting' | 'oldestArrivals'>;
  readonly table: Pick<StreamTable, 'usedOf'>;
  /** Open live sessions. */
  readonly sessions: number;
  readonly spool: AudioPage['spool'];
  readonly limits: AudioPage['limits'];
  /** Milliseconds of the pool's clock. */
  readonly nowMs: number;
}

/** What `GET /admin/audio` shows (docs/gateway.md#admin-audio). One pass over the open requests. */
export function audioView({ pool, table, nowMs, ...others }: AudioViewParts): AudioPage {
  const { waiting, oldestArrivals: oldest } = pool;
  const waits = (priority: SchedulerPriority): AudioPageWaiting => {
    const arrivedMs = oldest[priority];
    const oldestMs = arrivedMs === null ? null : Math.max(0, Math.round(nowMs - arrivedMs));
    return { requests: waiting[priority], oldest_ms: oldestMs };
  };
  const { workers } = pool.slots;
  return {
    workers: workers.map((worker) => workerView(worker, table)),
    models: workers.flatMap(({ link }) =>
      [...link.models.values()].map((model) => modelView(link.address, model)),
    ),
    waiting: { REALTIME: waits('REALTIME'), BATCH: waits('BATCH') },
    ...others,
  };
}

function workerView(
  { link, used, free, quarantined }: WorkerSlots,
  table: AudioViewParts['table'],
): AudioPageWorker {
  const { address, engine, status, reason, slots, maxStreams, models } = link;
  return {
    ...{ address, engine, status, reason },
    slots: { total: slots, used: used.size, free, quarantined: quarantined.size },
    streams: { total: maxStreams, used: table.usedOf(address) },
    models: [...models.keys()],
  };
}

function modelView(worker: string, model: WireModel): AudioPageModel {
  const { name, tasks, languages, voices, speechFormats, maxBatch, streaming } = model;
  return {
    ...{ name, worker, tasks, languages, voices, streaming },
    speech_formats: speechFormats,
    max_batch: Math.max(1, maxBatch),
  };
}
