import { randomUUID } from 'node:crypto';
import { flowWeight } from '../../core/dispatch/fairness-weights';
import { AudioWorker } from '../../inference/audio/audio-worker';
import type { AudioMetrics } from '../../platform/audio-metrics';
import type { AudioConfig } from '../../platform/config-audio';
import type { Config } from '../../platform/config-schema';
import type { Logger } from '../../platform/logger';
import { AudioPool } from './audio-pool';
import { drainAudio } from './drain';
import { metricObserver } from './metric-observer';
import { audioPoolSettings } from './pool-settings';

/** What the audio pool is opened with. */
export interface OpenAudioOptions {
  readonly config: Pick<Config, 'fairness' | 'gateway' | 'secrets_dir'>;
  readonly audio: AudioConfig;
  readonly metrics: AudioMetrics;
  readonly logger: Logger;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** The audio pool, with its workers and timers running. */
export interface OpenAudio {
  readonly pool: AudioPool;
  readonly workers: readonly AudioWorker[];
  /** Lets what was begun end within the drain budget; settles then (docs/design/audio-scheduling.md#shutdown). */
  drain(): Promise<void>;
  /** Ends timers and connections. */
  close(): Promise<void>;
}

const TICK_MS = 100;

/**
 * Connects to the audio workers of the settings. They are asked for their Health from now on, and are not ready before
 * they have answered. @throws config_invalid if a key or certificate cannot be read
 */
export function openAudioPool(options: OpenAudioOptions): OpenAudio {
  const { config, audio, metrics, logger, now } = options;
  const pending: { pool?: AudioPool } = {};
  const workers = audio.workers.map(
    (worker) =>
      new AudioWorker({
        ...{ worker, grpc: audio.grpc, logger },
        cancelTimeoutMs: audio.scheduler.cancel_timeout,
        secretsDir: config.secrets_dir,
        onChange: () => pending.pool?.refresh(),
      }),
  );
  const pool = new AudioPool({
    ...{ links: workers, audio, now, observer: metricObserver(metrics) },
    settings: audioPoolSettings(config.gateway, audio),
    defer: setImmediate,
    setTimer: (run, ms) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
    weightOf: (tenant, model) => flowWeight(config.fairness, tenant, model),
    newBatchId: () => `batch_${randomUUID()}`,
    onError: (err) => logger.error({ err }, 'scheduling failed for an audio request'),
  });
  pending.pool = pool;
  const timer = setInterval(() => pool.tick(), TICK_MS).unref();
  return {
    pool,
    workers,
    drain: () =>
      drainAudio(pool, {
        budgetMs: config.gateway.drain_budget,
        graceMs: audio.scheduler.shutdown_grace,
        now,
      }),
    close: async () => {
      clearInterval(timer);
      await Promise.all(workers.map((worker) => worker.close()));
    },
  };
}
