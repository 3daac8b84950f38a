import type { EventEmitter } from 'node:events';
import {
  type ClientDuplexStream,
  type Metadata,
  type ServiceError,
  status as CODE,
  type StatusObject,
} from '@grpc/grpc-js';
import type { Transcription } from '../../core/audio/transcription';
import type { AudioConfig, AudioWorkerConfig } from '../../platform/config-audio';
import type { Logger } from '../../platform/logger';
import type {
  WireAudioFrame,
  WireCancelReply,
  WireCancelRequest,
  WireHealthReply,
  WireModel,
  WireTranscriptEvent,
} from '../../proto/audio-messages';
import type {
  AudioWorkerLink,
  BatchCall,
  CallOptions,
  FileCall,
  RunningCall,
  SpeechCall,
  WorkerStatus,
} from './audio-calls';
import { type AudioClient, openAudioClient } from './audio-client';
import { runBatchCall } from './batch-call';
import { failureOf } from './failures';
import { runFileCall } from './file-call';
import { HealthWatch } from './health-watch';
import { runSpeechCall } from './speech-call';
import { readWorkerAccess, type WorkerAccess } from './worker-access';
import { WorkerChannel } from './worker-channel';
import { WorkerState } from './worker-state';

/** What a worker is opened with. */
export interface AudioWorkerOptions {
  readonly worker: AudioWorkerConfig;
  readonly grpc: AudioConfig['grpc'];
  readonly cancelTimeoutMs: number;
  readonly secretsDir: string;
  readonly logger: Logger;
  /** Something that the worker says may have changed, or a call has lost its connection. */
  onChange(): void;
}

/** Sends a request with one reply. */
type Send<Reply> = (
  client: AudioClient,
  metadata: Metadata,
  options: { readonly deadline: number },
  callback: (error: ServiceError | null, reply?: Reply) => void,
) => unknown;

type Asked<Reply> =
  { readonly ok: true; readonly value: Reply } | { readonly ok: false; readonly message: string };

/** The settings of a Python server that bear the pings of a gateway (docs/audio-workers.md#connection-settings). */
const PING_SETTINGS = [
  'grpc.keepalive_permit_without_calls=1',
  'grpc.http2.min_recv_ping_interval_without_data_ms=5000',
  'grpc.http2.max_ping_strikes=0',
];

/**
 * One audio worker: its Health, its channels and calls to it (docs/design/audio-calls.md). It asks for its Health from
 * now on. @throws config_invalid if a key or certificate cannot be read
 */
export class AudioWorker implements AudioWorkerLink {
  readonly address: string;
  readonly #options: AudioWorkerOptions;
  readonly #access: WorkerAccess;
  readonly #state: WorkerState;
  /** Files, speech, Health and Cancel. */
  readonly #files: WorkerChannel;
  /** Live streams, whose pings are more frequent. */
  readonly #streams: WorkerChannel;
  readonly #watch: HealthWatch;
  #wasReady: boolean | null = null;
  #isClosed = false;

  constructor(options: AudioWorkerOptions) {
    const { worker, grpc, secretsDir } = options;
    this.address = worker.address;
    this.#options = options;
    this.#access = readWorkerAccess(worker, secretsDir);
    this.#state = new WorkerState(worker);
    this.#files = this.#channel(grpc.max_file_message, {
      timeMs: grpc.file_keepalive,
      timeoutMs: grpc.file_keepalive_timeout,
    });
    this.#streams = this.#channel(grpc.max_stream_message, {
      timeMs: grpc.stream_keepalive,
      timeoutMs: grpc.stream_keepalive_timeout,
    });
    this.#watch = new HealthWatch({
      intervalMs: grpc.health_interval,
      ask: () => this.#askHealth(),
    });
  }

  get status(): WorkerStatus {
    return this.#state.status;
  }

  get reason(): string | null {
    return this.#state.reason;
  }

  get isReady(): boolean {
    return this.#state.isReady;
  }

  get engine(): string {
    return this.#state.engine;
  }

  get models(): ReadonlyMap<string, WireModel> {
    return this.#state.models;
  }

  get slots(): number {
    return this.#state.slots;
  }

  get maxStreams(): number {
    return this.#state.maxStreams;
  }

  get healthReplies(): number {
    return this.#state.healthReplies;
  }

  get hasNamedModels(): boolean {
    return this.#state.hasNamedModels;
  }

  transcribe(call: FileCall): RunningCall<Transcription> {
    const rpc = this.#start(call, (client, ...how) => client.transcribeFile(...how));
    return runFileCall(rpc, call);
  }

  transcribeBatch(call: BatchCall): RunningCall<null> {
    const rpc = this.#start(call, (client, ...how) => client.transcribeBatch(...how));
    return runBatchCall(rpc, call);
  }

  synthesize(call: SpeechCall): RunningCall<null> {
    const rpc = this.#start(call, (client, ...how) => client.synthesize(call.request, ...how));
    return runSpeechCall(rpc, call);
  }

  async cancel(requestId: string): Promise<boolean> {
    return this.#sendCancel({ requestId });
  }

  /** As {@link cancel}, for a live stream. */
  async cancelStream(sessionId: string): Promise<boolean> {
    return this.#sendCancel({ sessionId });
  }

  /** Begins a live stream, without a time limit. Its owner listens to all its events, `error` included. */
  openStream(
    metadata: CallOptions['metadata'],
  ): ClientDuplexStream<WireAudioFrame, WireTranscriptEvent> {
    const { client, end } = this.#streams.begin();
    const stream = client.transcribeStream(this.#access.metadata(metadata), {});
    stream.once('status', (status: StatusObject) => this.#judge(status, end));
    return stream;
  }

  /** Ends Health and all calls. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const isDone = this.#watch.close();
    this.#files.close();
    this.#streams.close();
    await isDone;
  }

  #channel(
    maxMessageBytes: number,
    keepalive: { readonly timeMs: number; readonly timeoutMs: number },
  ): WorkerChannel {
    return new WorkerChannel({
      ...{ keepalive, maxMessageBytes },
      open: (options) => openAudioClient(this.#access, options),
      onPingRefused: () =>
        this.#options.logger.warn(
          { worker: this.address, settings: PING_SETTINGS },
          'the audio worker refuses pings, so lost connections are noticed late: give its gRPC server these settings',
        ),
    });
  }

  #start<Rpc extends EventEmitter>(
    call: CallOptions,
    open: (client: AudioClient, metadata: Metadata, options: { deadline: number }) => Rpc,
  ): Rpc {
    const { client, end } = this.#files.begin();
    const metadata = this.#access.metadata({ ...call.metadata, 'x-request-id': call.requestId });
    const rpc = open(client, metadata, { deadline: Date.now() + call.timeoutMs });
    rpc.once('status', (status: StatusObject) => this.#judge(status, end));
    return rpc;
  }

  /** A call has ended. If its connection is lost, the worker gets nothing before it has answered Health. */
  #judge(status: StatusObject, end: (status: StatusObject) => void): void {
    end(status);
    if (status.code !== CODE.UNAVAILABLE) return;
    this.#state.onLost();
    this.#changed();
    this.#watch.askNow();
  }

  async #sendCancel(request: WireCancelRequest): Promise<boolean> {
    const { cancelTimeoutMs } = this.#options;
    const send: Send<WireCancelReply> = (client, ...how) => client.cancel(request, ...how);
    const reply = await this.#ask(send, cancelTimeoutMs);
    return reply.ok && reply.value.acknowledged;
  }

  async #askHealth(): Promise<void> {
    const { health_timeout: timeoutMs } = this.#options.grpc;
    const send: Send<WireHealthReply> = (client, ...how) => client.health({}, ...how);
    const reply = await this.#ask(send, timeoutMs);
    if (reply.ok) this.#state.onReply(reply.value);
    else this.#state.onMiss(reply.message);
    this.#changed();
  }

  /** Sends a request with one reply. It never rejects. */
  #ask<Reply>(send: Send<Reply>, timeoutMs: number): Promise<Asked<Reply>> {
    return new Promise((resolve) => {
      if (this.#isClosed) return resolve({ ok: false, message: 'closed' });
      const { client, end } = this.#files.begin();
      const options = { deadline: Date.now() + timeoutMs };
      send(client, this.#access.metadata({}), options, (error, reply) => {
        end(error ?? { code: CODE.OK, details: '' });
        if (error === null && reply !== undefined) resolve({ ok: true, value: reply });
        else resolve({ ok: false, message: failureOf(error ?? NO_REPLY).message });
      });
    });
  }

  #changed(): void {
    const { isReady, status, reason, address } = this;
    const isNews = isReady !== this.#wasReady;
    this.#wasReady = isReady;
    const { logger, onChange } = this.#options;
    if (isNews && isReady)
      logger.info({ worker: address, engine: this.engine }, 'audio worker ready');
    else if (isNews) logger.warn({ worker: address, status, reason }, 'audio worker not ready');
    onChange();
  }
}

const NO_REPLY = { code: CODE.INTERNAL, details: 'no reply' };
