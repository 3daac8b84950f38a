import type {
  CallOptions,
  ChannelOptions,
  Client,
  ClientDuplexStream,
  ClientReadableStream,
  ClientUnaryCall,
  Metadata,
  requestCallback,
} from '@grpc/grpc-js';
import { audioWorkerService } from '../../proto/audio-worker';
import type {
  WireAudioFrame,
  WireBatchEvent,
  WireBatchPart,
  WireCancelReply,
  WireCancelRequest,
  WireFileEvent,
  WireFilePart,
  WireHealthReply,
  WireSpeechChunk,
  WireSpeechRequest,
  WireTranscriptEvent,
} from '../../proto/audio-messages';
import type { WorkerAccess } from './worker-access';

type Unary<Request, Reply> = (
  request: Request,
  metadata: Metadata,
  options: Partial<CallOptions>,
  callback: requestCallback<Reply>,
) => ClientUnaryCall;

type Duplex<Request, Reply> = (
  metadata: Metadata,
  options: Partial<CallOptions>,
) => ClientDuplexStream<Request, Reply>;

/** A gRPC client of an audio worker: one channel. */
export interface AudioClient extends Client {
  readonly transcribeFile: Duplex<WireFilePart, WireFileEvent>;
  readonly transcribeBatch: Duplex<WireBatchPart, WireBatchEvent>;
  readonly transcribeStream: Duplex<WireAudioFrame, WireTranscriptEvent>;
  readonly synthesize: (
    request: WireSpeechRequest,
    metadata: Metadata,
    options: Partial<CallOptions>,
  ) => ClientReadableStream<WireSpeechChunk>;
  readonly cancel: Unary<WireCancelRequest, WireCancelReply>;
  readonly health: Unary<object, WireHealthReply>;
}

/**
 * Opens a channel to a worker. It is its own: calls of another one on the same connection would end with it. It connects
 * at the first call.
 */
export function openAudioClient(access: WorkerAccess, options: ChannelOptions): AudioClient {
  const AudioWorker = audioWorkerService();
  return new AudioWorker(access.address, access.credentials, {
    'grpc.use_local_subchannel_pool': 1,
    // The gateway decides what is repeated.
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.service_config_disable_resolution': 1,
    // A worker that restarts is to be found again within its next Health.
    'grpc.initial_reconnect_backoff_ms': 250,
    'grpc.max_reconnect_backoff_ms': 2_000,
    ...options,
  }) as unknown as AudioClient;
}
