import { postProcessed } from '../../core/audio/post-processing';
import { STAGES } from '../../core/audio/itn/stages';
import type { AudioMetrics } from '../../platform/audio-metrics';
import { type AudioConfig, WITHOUT_AUDIO_WORKERS } from '../../platform/config-audio';
import type { AudioPage } from '../../platform/audio-page';
import type { Config } from '../../platform/config-schema';
import type { ProcessHost } from '../../platform/host-process';
import type { AudioRoutes, PostProcess } from './audio-context';
import { audioSample } from './audio-sample';
import { audioView } from './audio-view';
import { type OpenAudio, openAudioPool } from './open-audio-pool';
import { LiveSessions } from './realtime/live-sessions';
import type { RealtimeContext } from './realtime/realtime-route';
import { StreamTable } from './realtime/stream-table';
import { createSpool, openSpool } from './spool';

/** What the audio of a gateway is opened with. */
export interface AudioOptions extends ProcessHost {
  readonly config: Config;
  readonly metrics: AudioMetrics;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** Everything that serves audio. */
export interface GatewayAudio extends OpenAudio {
  readonly routes: AudioRoutes;
  /** Null without audio workers. */
  readonly realtime: Pick<RealtimeContext, 'table' | 'sessions' | 'limits'> | null;
  /** What `GET /admin/audio` shows now. */
  view(): AudioPage;
}

/**
 * Opens the spool and the pool of audio workers, which may have none: forms may be for HTTP pools.
 *
 * @throws config_invalid
 */
export async function openAudio(options: AudioOptions): Promise<GatewayAudio> {
  const { config, metrics, logger, onClose, now } = options;
  const { audio: settings = WITHOUT_AUDIO_WORKERS } = config.gateway;
  const hasWorkers = settings.workers.length > 0;
  const spool = hasWorkers ? await openSpool(settings.spool) : createSpool(settings.spool);
  const opened = openAudioPool({ config, audio: settings, metrics, logger, now });
  const { pool, workers } = opened;
  onClose('audio workers', () => opened.close());
  const sessions = new LiveSessions();
  metrics.observeAudio(() => audioSample(pool, sessions.active, spool.room));
  const postProcess = postProcessing(settings.postprocessing, (err) => {
    metrics.postprocessFailures.inc();
    logger.warn({ err }, 'a stage of post-processing failed');
  });
  const table = new StreamTable(workers);
  return {
    ...opened,
    routes: {
      ...{ settings, scheduler: pool, spool, postProcess },
      onSpeechBegun: (ttfbMs) => metrics.ttfb.observe(ttfbMs / 1_000),
    },
    view: () =>
      audioView({
        ...{ pool, table, sessions: sessions.active, nowMs: now() },
        spool: { bytes: spool.room.bytes, max_bytes: settings.spool.max_bytes },
        limits: { batch_queue_ttl_ms: settings.fair_request_queue.batch_queue_ttl },
      }),
    realtime: hasWorkers ? { table, sessions, limits: settings.stream } : null,
  };
}

/** The stages of the settings. */
function postProcessing(
  { default: usual, models }: AudioConfig['postprocessing'],
  onFailure: (error: unknown) => void,
): PostProcess {
  return (transcription, model) => {
    const names = Object.hasOwn(models, model) ? (models[model] ?? usual) : usual;
    const stages = names.map((name) => STAGES[name]);
    return postProcessed(transcription, { stages, model }, onFailure);
  };
}
