import { Counter, Histogram } from 'prom-client';
import { createLabelValues } from './label-values';
import type { Registry } from './metrics';
import { readCounter, readGauge, type Reading } from './series/read-series';

/** The audio pool at a scrape. */
export interface AudioSample {
  /** Waiting requests by priority. */
  readonly waiting: Readonly<Record<string, number>>;
  /** BATCH requests that became REALTIME because of their age. */
  readonly promoted: number;
  /** Speech requests in progress. */
  readonly speaking: number;
  /** Live sessions. */
  readonly streams: number;
  readonly spoolBytes: number;
  /** `spool.max_bytes`. */
  readonly spoolMaxBytes: number;
  readonly workers: readonly AudioWorkerSample[];
}

/** One audio worker at a scrape. */
export interface AudioWorkerSample {
  /** Its address. */
  readonly worker: string;
  readonly isReady: boolean;
  readonly slots: Readonly<Record<'used' | 'free' | 'quarantined', number>>;
}

/** The metrics of audio: those of the scheduler's first description by their names, and ours (docs/metrics.md#audio). */
export type AudioMetrics = ReturnType<typeof createAudioMetrics>;

const NOTHING: AudioSample = {
  ...{ waiting: {}, promoted: 0, speaking: 0, streams: 0, workers: [] },
  ...{ spoolBytes: 0, spoolMaxBytes: 0 },
};
/** Calls take from milliseconds to an hour. */
const SECONDS = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  ...[10, 30, 60, 120, 300, 600, 1_800, 3_600],
];
const CANCEL_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5];
const SIZES = [1, 2, 4, 8, 16, 32, 64];
const STATUSES = ['completed', 'cancelled', 'failed'];
const PRIORITIES = ['REALTIME', 'BATCH'];
const TTS_STATUSES = ['completed', 'cancelled', 'failed'];

/** Registers the metrics of audio. */
export function createAudioMetrics(
  registry: Registry,
  { maxModels = 200, idleMs = 3_600_000 }: { maxModels?: number; idleMs?: number },
) {
  const registers = [registry];
  const source = { read: () => NOTHING };
  registerSample(registers, () => source.read());
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, buckets, registers });
  const requests = new Counter({
    name: 'scheduler_requests_total',
    help: 'Admitted audio requests that ended, by priority on arrival and status',
    labelNames: ['priority', 'status'],
    registers,
  });
  const speech = new Counter({
    name: 'tts_requests_total',
    help: 'Admitted speech requests that ended, by status',
    labelNames: ['status'],
    registers,
  });
  // Every value is shown from the start, so that `increase()` sees the first event of a kind.
  for (const status of STATUSES) {
    for (const priority of PRIORITIES) requests.inc({ priority, status }, 0);
  }
  for (const status of TTS_STATUSES) speech.inc({ status }, 0);
  return {
    queueWait: histogram(
      'scheduler_queue_wait_seconds',
      'Time of audio requests in the accumulator and the queue',
      SECONDS,
    ),
    grpcDuration: histogram(
      'scheduler_grpc_duration_seconds',
      'Duration of calls to audio workers',
      SECONDS,
    ),
    cancelLatency: histogram(
      'scheduler_cancel_latency_seconds',
      'Time from the cancel of a call to its end',
      CANCEL_SECONDS,
    ),
    batchSize: histogram(
      'scheduler_batch_size',
      'Requests in calls for requests of priority BATCH',
      SIZES,
    ),
    ttfb: histogram('tts_ttfb_seconds', 'Time to the first byte of speech', SECONDS),
    synthesis: histogram('tts_synthesis_duration_seconds', 'Duration of speech requests', SECONDS),
    requests,
    speech,
    addAudioSeconds: audioSeconds(registers, { maxModels, idleMs }),
    postprocessFailures: new Counter({
      name: 'audio_postprocess_failures_total',
      help: 'Stages of post-processing that failed and were skipped',
      registers,
    }),
    /** Sets the source of the gauges; called once. */
    observeAudio: (read: () => AudioSample) => void (source.read = read),
  } as const;
}

function registerSample(registers: Registry[], sample: () => AudioSample): void {
  const gauge = (name: string, help: string, valueOf: (from: AudioSample) => number) =>
    readGauge(registers, { name, help }, () => [[{}, valueOf(sample())]]);
  const depth = {
    name: 'scheduler_queue_depth',
    help: 'Audio requests that wait, by priority on arrival',
    labelNames: ['priority'],
  };
  readGauge(registers, depth, () =>
    PRIORITIES.map((priority): Reading => [{ priority }, sample().waiting[priority] ?? 0]),
  );
  const promotions = {
    name: 'scheduler_aging_promotions_total',
    help: 'BATCH requests that became REALTIME because of their age',
  };
  readCounter(registers, promotions, () => [[{}, sample().promoted]]);
  gauge('tts_active_sessions', 'Speech requests in progress', ({ speaking }) => speaking);
  gauge('audio_streams_active', 'Live sessions', ({ streams }) => streams);
  gauge('audio_spool_bytes', 'Bytes reserved in the spool', ({ spoolBytes }) => spoolBytes);
  gauge('audio_spool_max_bytes', 'Limit of audio_spool_bytes', ({ spoolMaxBytes: max }) => max);
  const ready = {
    name: 'audio_worker_ready',
    help: 'Whether an audio worker is ready',
    labelNames: ['worker'],
  };
  readGauge(registers, ready, () =>
    sample().workers.map(({ worker, isReady }): Reading => [{ worker }, Number(isReady)]),
  );
  const slots = {
    name: 'audio_worker_slots',
    help: 'Slots of an audio worker by state',
    labelNames: ['worker', 'state'],
  };
  readGauge(registers, slots, () =>
    sample().workers.flatMap(({ worker, slots: byState }) =>
      Object.entries(byState).map(([state, count]): Reading => [{ worker, state }, count]),
    ),
  );
}

/** Clients choose among models that workers have, so their number is bounded in any case. */
function audioSeconds(
  registers: Registry[],
  { maxModels, idleMs }: { readonly maxModels: number; readonly idleMs: number },
): (model: string, task: string, seconds: number) => void {
  const counter = new Counter({
    name: 'audio_seconds_total',
    help: 'Seconds of audio that were recognised or spoken',
    labelNames: ['model', 'task'],
    registers,
  });
  const labels = createLabelValues({
    ...{ max: maxModels, idleMs, nowMs: () => performance.now() },
    onGone: (model) => counter.remove({ model }),
  });
  return (model, task, seconds) => counter.inc({ model: labels.of(model), task }, seconds);
}
