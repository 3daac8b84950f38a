import type { EventEmitter } from 'node:events';
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
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
  WireModel,
  WireSpeechChunk,
  WireSpeechRequest,
  WireTranscriptEvent,
} from '../../proto/audio-messages';

/** A call as the server sees it. */
export type FileRpc = ServerDuplexStream<WireFilePart, Partial<WireFileEvent>>;
export type BatchRpc = ServerDuplexStream<WireBatchPart, Partial<WireBatchEvent>>;
export type StreamRpc = ServerDuplexStream<WireAudioFrame, Partial<WireTranscriptEvent>>;
export type SpeechRpc = ServerWritableStream<WireSpeechRequest, Partial<WireSpeechChunk>>;

/** What a scripted worker does; without a method, it answers UNIMPLEMENTED. */
export interface AudioScript {
  file?(call: FileRpc): void;
  batch?(call: BatchRpc): void;
  stream?(call: StreamRpc): void;
  speech?(call: SpeechRpc): void;
  /** The reply to a Cancel; null for none. */
  cancel?(request: WireCancelRequest): Partial<WireCancelReply> | null;
  /** The reply to Health; null for none. */
  health?(): Partial<WireHealthReply> | null;
}

/** An audio worker of a test, in this process. */
export interface AudioServer {
  readonly address: string;
  script: AudioScript;
  /** Ends it at once, with all its connections. */
  kill(): void;
}

/** A model that can do everything. */
export const MODEL: Partial<WireModel> = {
  name: 'whisper-1',
  ...{ segments: true, words: true, deltas: true, maxBatch: 8, streaming: true, partials: true },
};

/** A worker that serves {@link MODEL} in two slots. */
export const SERVING = {
  status: 'SERVING',
  models: [MODEL],
  ...{ slots: 2, maxStreams: 4, workerId: 'w', engine: 'scripted' },
} as Partial<WireHealthReply>;

/** Starts a worker that follows a script, which may change at any time. `port` is that of one that was killed. */
export async function startAudioServer(
  script: AudioScript,
  { port = 0, options = {} }: { port?: number; options?: object } = {},
): Promise<AudioServer> {
  const server = new Server({ 'grpc.max_receive_message_length': -1, ...options });
  const worker: AudioServer = { address: '', script, kill: () => server.forceShutdown() };
  server.addService(audioWorkerService().service, {
    transcribeFile: streaming(() => worker.script.file?.bind(worker.script)),
    transcribeBatch: streaming(() => worker.script.batch?.bind(worker.script)),
    transcribeStream: streaming(() => worker.script.stream?.bind(worker.script)),
    synthesize: streaming(() => worker.script.speech?.bind(worker.script)),
    cancel: unary((request: WireCancelRequest) =>
      worker.script.cancel === undefined ? undefined : worker.script.cancel(request),
    ),
    health: unary(() => (worker.script.health ?? (() => SERVING))()),
  });
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, at) =>
      error === null ? resolve(at) : reject(error),
    );
  });
  return Object.assign(worker, { address: `127.0.0.1:${bound}` });
}

/** Ends a call with a gRPC status. */
export function failWith(call: EventEmitter, code: number, details = ''): void {
  call.emit('error', { code, details });
}

const UNIMPLEMENTED = 12;

function streaming<Call extends EventEmitter>(handler: () => ((call: Call) => void) | undefined) {
  return (call: Call): void => {
    call.on('error', () => undefined);
    const run = handler();
    if (run === undefined) failWith(call, UNIMPLEMENTED);
    else run(call);
  };
}

/** Undefined: UNIMPLEMENTED; null: no reply. */
function unary<Request, Reply>(reply: (request: Request) => Reply | null | undefined) {
  return (call: ServerUnaryCall<Request, Reply>, callback: sendUnaryData<Reply>): void => {
    const answer = reply(call.request);
    if (answer === undefined) callback({ code: UNIMPLEMENTED, details: '' });
    else if (answer !== null) callback(null, answer);
  };
}
