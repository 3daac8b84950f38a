import { WebSocket } from 'ws';
import type { WireAudioFrame, WireTranscriptEvent } from '../../../../proto/audio-messages';
import {
  type AudioScript,
  type AudioServer,
  MODEL,
  SERVING,
  startAudioServer,
  type StreamRpc,
} from '../../../support/audio-server';
import { until } from '../../../support/until';
import { onClose, startGateway, type TestGateway } from '../../gateway-fixtures';

export const LATE_MS = 20_000;
export const PCM_100_MS = Buffer.alloc(4_800);

const LIVE = { ...MODEL, serverVad: true };

/** A stream as its worker sees it. */
export interface LiveStream {
  readonly call: StreamRpc;
  readonly frames: WireAudioFrame[];
  /** Bytes of audio so far. */
  readonly bytes: () => number;
  readonly say: (kind: WireTranscriptEvent['kind'], rest?: Partial<WireTranscriptEvent>) => void;
  isCancelled: boolean;
}

export interface LiveWorker {
  readonly server: AudioServer;
  readonly streams: LiveStream[];
  /** Sessions for which a Cancel came. */
  readonly cancels: string[];
}

/** A worker that notes what it gets, and says what the test says. */
export async function liveWorker(
  script: AudioScript = {},
  health: object = {},
  port = 0,
): Promise<LiveWorker> {
  const streams: LiveStream[] = [];
  const cancels: string[] = [];
  const server = await startAudioServer(
    {
      stream: (call) => void streams.push(liveStream(call)),
      cancel: ({ sessionId }) => {
        cancels.push(sessionId ?? '');
        return { acknowledged: true, stopped: true };
      },
      health: () => ({ ...SERVING, models: [LIVE], ...health }) as never,
      ...script,
    },
    { port },
  );
  onClose(async () => server.kill());
  return { server, streams, cancels };
}

export function liveStream(call: StreamRpc): LiveStream {
  const frames: WireAudioFrame[] = [];
  const stream: LiveStream = {
    call,
    frames,
    isCancelled: false,
    bytes: () => frames.reduce((sum, { audio }) => sum + (audio?.length ?? 0), 0),
    say: (kind, rest = {}) => void call.write({ kind, ...rest }),
  };
  call.on('data', (frame: WireAudioFrame) => frames.push(frame));
  call.on('cancelled', () => (stream.isCancelled = true));
  return stream;
}

/** A gateway before audio workers, when they are ready. */
export async function liveGateway(
  workers: readonly LiveWorker[],
  { auth = {}, ...audio }: Record<string, unknown> = {},
): Promise<TestGateway> {
  const gateway = await startGateway([{ url: 'http://127.0.0.1:9' }], {
    auth,
    drain_budget: '3s',
    audio: {
      workers: workers.map(({ server }) => ({ address: server.address })),
      grpc: { health_interval: '100ms', health_timeout: '10s' },
      scheduler: { shutdown_grace: '1s' },
      ...audio,
    },
  });
  return gateway;
}

type Event = Record<string, unknown> & { readonly type: string };

/** A client of a test. */
export interface LiveClient {
  readonly socket: WebSocket;
  readonly events: Event[];
  readonly of: (type: string) => Event[];
  readonly next: (type: string, count?: number) => Promise<Event>;
  readonly send: (event: object) => void;
  /** The code with which the connection was closed. */
  readonly closed: Promise<number>;
  /** The text of all deltas. */
  readonly text: () => string;
}

const TRANSCRIPTION = 'conversation.item.input_audio_transcription';
export const DELTA = `${TRANSCRIPTION}.delta`;
export const COMPLETED = `${TRANSCRIPTION}.completed`;
export const FAILED = `${TRANSCRIPTION}.failed`;

/** Connects when the worker is ready: a refusal for lack of one is tried again. */
export async function connect(
  gateway: Pick<TestGateway, 'url'>,
  query = 'model=whisper-1',
  { manual = true, headers = {} }: { manual?: boolean; headers?: Record<string, string> } = {},
): Promise<LiveClient> {
  const open = () => tryConnect(gateway, query, headers).catch(retryWhile503);
  const client = await until(open, LATE_MS, 'a session', 50);
  await client.next('session.created');
  if (manual) {
    client.send(update({ turn_detection: null }));
    await client.next('session.updated');
  }
  return client;
}

function retryWhile503(error: Error): null {
  if (error.message.includes('503')) return null;
  throw error;
}

/** A `session.update` of the audio input. */
export function update(input: object): object {
  return { type: 'session.update', session: { type: 'transcription', audio: { input } } };
}

export async function tryConnect(
  { url }: Pick<TestGateway, 'url'>,
  query: string,
  headers: Record<string, string> = {},
  protocols: string[] = [],
): Promise<LiveClient> {
  const address = `${url.replace('http', 'ws')}/v1/realtime?${query}`;
  const socket = new WebSocket(address, protocols, { headers });
  onClose(async () => socket.terminate());
  const events: Event[] = [];
  socket.on('message', (data: Buffer) => events.push(JSON.parse(data.toString()) as Event));
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.on('error', () => undefined);
  const of = (type: string): Event[] => events.filter((event) => event.type === type);
  return {
    ...{ socket, events, of, closed },
    next: (type, count = 1) => until(() => of(type)[count - 1], LATE_MS, `${count} ${type}`, 5),
    send: (event) => socket.send(JSON.stringify(event)),
    text: () =>
      of(DELTA)
        .map(({ delta }) => String(delta))
        .join(''),
  };
}
