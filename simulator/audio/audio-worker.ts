import type { EventEmitter } from 'node:events';
import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall } from '@grpc/grpc-js';
import { NightshiftError } from '../../core/errors';
import { audioWorkerService } from '../../proto/audio-worker';
import type {
  WireCancelReply,
  WireCancelRequest,
  WireHealthReply,
  WireModel,
} from '../../proto/audio-messages';
import { Calls, type CallStats } from './calls';
import { answerStream } from './live';
import { answerBatch, answerFile } from './recordings';
import { audioSettings, type AudioSettings, changedAudioSettings } from './settings';
import { answerSpeech } from './synthesis';

/** Where the simulated audio worker listens, and its first settings. */
export interface AudioSimulatorOptions {
  readonly host: string;
  /** 0 lets the system choose a free port. */
  readonly port: number;
  /** Members of `audio` in `/simulator/config`. */
  readonly settings?: object;
}

/** A running simulated audio worker. */
export interface AudioSimulator {
  /** `host:port`. */
  readonly address: string;
  readonly settings: AudioSettings;
  readonly stats: CallStats;
  /** Changes settings, also of calls that run. @throws invalid_request */
  configure(patch: unknown): AudioSettings;
  /** Ends it at once, with all connections. */
  close(): void;
}

/** What a client's pings need (docs/audio-workers.md#connection-settings). */
const CONNECTION = {
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.http2.min_recv_ping_interval_without_data_ms': 5_000,
  'grpc.http2.max_ping_strikes': 0,
  'grpc.max_receive_message_length': -1,
};

/**
 * Starts an audio worker without an engine (docs/design/simulator.md#audio-worker): texts and tones are made from the
 * bytes that it gets. @throws port_in_use, config_invalid if it cannot listen, invalid_request for a wrong setting
 */
export async function startAudioSimulator(options: AudioSimulatorOptions): Promise<AudioSimulator> {
  let settings = changedAudioSettings(audioSettings.parse({}), options.settings ?? {});
  const calls = new Calls(
    () => settings,
    () => void crash(),
  );
  const context = { calls, settings: () => settings };
  const open = { server: createServer() };
  const port = await bind(open.server, options);

  function createServer(): Server {
    const server = new Server(CONNECTION);
    server.addService(audioWorkerService().service, {
      transcribeFile: quiet((rpc) => answerFile(rpc as never, context)),
      transcribeBatch: quiet((rpc) => answerBatch(rpc as never, context)),
      transcribeStream: quiet((rpc) => answerStream(rpc as never, context)),
      synthesize: quiet((rpc) => answerSpeech(rpc as never, context)),
      cancel: (
        { request }: ServerUnaryCall<WireCancelRequest, WireCancelReply>,
        callback: sendUnaryData<WireCancelReply>,
      ) => {
        const found = calls.cancel(request.requestId || request.sessionId || '');
        if (!settings.deaf_cancel) callback(null, { acknowledged: found, stopped: found });
      },
      health: (_: unknown, callback: sendUnaryData<WireHealthReply>) => {
        if (!settings.silent) callback(null, healthOf(settings, calls.stats));
      },
    });
    return server;
  }

  /** As a process that dies and is started again. */
  async function crash(): Promise<void> {
    open.server.forceShutdown();
    open.server = createServer();
    await bind(open.server, { ...options, port }).catch(() => undefined);
  }

  return {
    address: `${options.host}:${port}`,
    get settings() {
      return settings;
    },
    stats: calls.stats,
    configure: (patch) => (settings = changedAudioSettings(settings, patch)),
    close: () => open.server.forceShutdown(),
  };
}

function quiet(answer: (rpc: EventEmitter) => void): (rpc: EventEmitter) => void {
  return (rpc) => {
    // The other side is gone; without a listener that would end the process.
    rpc.on('error', () => undefined);
    answer(rpc);
  };
}

function healthOf(settings: AudioSettings, stats: CallStats): WireHealthReply {
  const { status, slots, max_streams: maxStreams, models } = settings;
  return {
    ...{ status, slots, maxStreams, workerId: 'simulator', engine: 'simulator', message: '' },
    ...{ inFlight: stats.running, streams: 0, models: models.map(wireModel) },
  };
}

function wireModel(model: AudioSettings['models'][number]): WireModel {
  const { name, tasks, languages, segments, words, deltas, streaming, partials, voices } = model;
  return {
    ...{ name, tasks, languages, segments, words, deltas, streaming, partials, voices },
    contentTypes: model.content_types,
    maxBatch: model.max_batch,
    serverVad: model.server_vad,
    sampleRatesHz: model.sample_rates_hz,
    speechFormats: model.speech_formats,
  };
}

function bind(server: Server, { host, port }: AudioSimulatorOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) return resolve(bound);
      const isTaken = error.message.includes('EADDRINUSE');
      const advice = isTaken
        ? 'choose another --audio-port'
        : 'choose another --host or --audio-port';
      const message = `cannot listen on ${host}:${port} for audio: ${advice}`;
      const code = isTaken ? 'port_in_use' : 'config_invalid';
      reject(new NightshiftError(code, message, { cause: error }));
    });
  });
}
