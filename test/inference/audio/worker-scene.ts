import type { Transcription } from '../../../core/audio/transcription';
import { AudioWorker } from '../../../inference/audio/audio-worker';
import type { AudioSource, CallEnd, FileCall } from '../../../inference/audio/audio-calls';
import { audioSection } from '../../../platform/config-audio';
import { createLogger } from '../../../platform/logger';
import type { WireFileOptions } from '../../../proto/audio-messages';
import { type AudioScript, type AudioServer, startAudioServer } from '../../support/audio-server';
import { until } from '../../support/until';

export const LATE_MS = 15_000;

/** A worker of a test and its server. Call `close` at the end. */
export interface WorkerScene {
  readonly server: AudioServer;
  readonly worker: AudioWorker;
  readonly logged: { level: string; msg: string }[];
  close(): Promise<void>;
}

/** A scripted worker that is ready, unless `isReady` says otherwise. */
export async function workerScene(
  script: AudioScript = {},
  {
    grpc = {},
    worker = {},
    options = {},
    isReady = true,
  }: { grpc?: object; worker?: object; options?: object; isReady?: boolean } = {},
): Promise<WorkerScene> {
  const server = await startAudioServer(script, { options });
  const config = audioSection.parse({
    workers: [{ address: server.address, ...worker }],
    grpc: { health_interval: '100ms', health_timeout: '10s', ...grpc },
  });
  const logged: WorkerScene['logged'] = [];
  const logger = createLogger({ level: 'info', format: 'json' } as never, 'test');
  for (const level of ['info', 'warn', 'error'] as const) {
    logger[level] = ((_: unknown, msg: string) => void logged.push({ level, msg })) as never;
  }
  const [first] = config.workers;
  if (first === undefined) throw new Error('no worker');
  const audioWorker = new AudioWorker({
    ...{ worker: first, grpc: config.grpc, secretsDir: '/nowhere', logger },
    cancelTimeoutMs: 2_000,
    onChange: () => undefined,
  });
  if (isReady) await until(() => audioWorker.isReady, LATE_MS, 'the worker to be ready');
  return {
    ...{ server, worker: audioWorker, logged },
    close: async () => {
      await audioWorker.close();
      server.kill();
    },
  };
}

const OPTIONS: WireFileOptions = {
  ...{ requestId: 'req_1', model: 'whisper-1', task: 'TRANSCRIBE', language: '', prompt: '' },
  ...{ temperature: 0, wantSegments: false, wantWords: false, wantDeltas: false },
  ...{ filename: 'a.wav', contentType: 'audio/wav', size: 0, durationS: 0 },
};

/** A recording in memory. */
export function audioOf(bytes: Buffer): AudioSource {
  return {
    size: bytes.length,
    async *read() {
      yield bytes;
    },
  };
}

/** A call for some bytes. */
export function fileCall(bytes = Buffer.from('abc'), changes: Partial<FileCall> = {}): FileCall {
  const options = { ...OPTIONS, size: bytes.length };
  return {
    ...{ requestId: 'req_1', timeoutMs: 60_000, metadata: {} },
    ...{ options, audio: audioOf(bytes) },
    ...changes,
  };
}

/** The text of a call that ended well, else its kind of failure. */
export function said(end: CallEnd<Transcription>): string {
  return end.ok ? end.result.text : `failed: ${end.failure.kind}`;
}
