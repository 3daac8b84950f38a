import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WireFileOptions, WireFilePart } from '../../../proto/audio-messages';
import {
  type AudioScript,
  type AudioServer,
  type FileRpc,
  startAudioServer,
} from '../../support/audio-server';
import { until } from '../../support/until';
import {
  type Backend,
  onClose,
  startBackend,
  startGateway,
  type TestGateway,
} from '../gateway-fixtures';
import { FORM_TYPE, formBody, type Part, wav } from './forms';

/** A call at the worker whose recording has arrived. */
export interface HeldCall {
  readonly rpc: FileRpc;
  readonly options: WireFileOptions;
  readonly audio: Buffer;
}

/** A worker whose calls wait for the test. */
export interface HoldingWorker {
  readonly server: AudioServer;
  readonly held: HeldCall[];
}

/** The transcript of {@link answerCall}. */
export const TRANSCRIPT = {
  text: 'hello world',
  language: 'en',
  durationS: 1.5,
  segments: [
    {
      ...{ id: 0, startS: 0, endS: 1.5, text: 'hello world', avgLogprob: -0.5 },
      ...{ compressionRatio: 1, noSpeechProb: 0.1, temperature: 0, seek: 0, tokens: [1, 2] },
    },
  ],
  words: [{ text: 'hello', startS: 0, endS: 0.5, probability: 1 }],
  usage: { audioSeconds: 1.5, inputTokens: 0, outputTokens: 0 },
};

/** Ends a call with a transcript. */
export function answerCall({ rpc }: Pick<HeldCall, 'rpc'>, result: object = TRANSCRIPT): void {
  rpc.write({ result } as never);
  rpc.end();
}

/** A worker whose calls are answered by `onCall`, or wait in `held`. */
export async function startWorker(
  onCall?: (call: HeldCall) => void,
  script: Partial<AudioScript> = {},
): Promise<HoldingWorker> {
  const held: HeldCall[] = [];
  const file = (rpc: FileRpc): void => {
    const chunks: Buffer[] = [];
    let options: WireFileOptions | null = null;
    rpc.on('data', (part: WireFilePart) => {
      if ('options' in part && part.options !== undefined) options = part.options;
      else if ('chunk' in part) chunks.push(part.chunk);
    });
    rpc.on('end', () => {
      const call = { rpc, options: options!, audio: Buffer.concat(chunks) };
      if (onCall === undefined) held.push(call);
      else onCall(call);
    });
  };
  const server = await startAudioServer({
    file,
    cancel: () => ({ acknowledged: true }),
    ...script,
  });
  onClose(async () => server.kill());
  return { server, held };
}

/** A gateway before an audio worker, and before a model server that serves the model `m`. */
export interface AudioGateway extends TestGateway {
  readonly backend: Backend;
}

/** Starts a gateway, and waits for its audio workers. */
export async function startAudioGateway(
  workers: readonly Pick<HoldingWorker, 'server'>[],
  audio: Record<string, unknown> = {},
  settings: Record<string, unknown> = {},
): Promise<AudioGateway> {
  const dir = mkdtempSync(join(tmpdir(), 'audio-'));
  onClose(async () => rmSync(dir, { recursive: true, force: true }));
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    audio: {
      workers: workers.map(({ server }) => ({ address: server.address })),
      grpc: { health_interval: '50ms' },
      accumulator: { flush_interval: '1ms' },
      ...audio,
      spool: { dir, ...(audio['spool'] as object | undefined) },
    },
    ...settings,
  });
  for (const { server } of workers) {
    const ready = `audio_worker_ready{worker="${server.address}",process="gateway"}`;
    await until(async () => (await gateway.metric(ready)) === 1, 10_000, 'an audio worker', 10);
  }
  return { ...gateway, backend };
}

/** Waits until so many calls wait at a worker. */
export async function untilCalled({ held }: HoldingWorker, count: number): Promise<void> {
  await until(() => held.length === count, 10_000, `${count} calls`, 2);
}

/** Waits until nothing is reserved in the spool. */
export async function untilSpoolEmpty(gateway: TestGateway): Promise<void> {
  const isEmpty = async () => (await gateway.metric('audio_spool_bytes{process="gateway"}')) === 0;
  await until(isEmpty, 10_000, 'an empty spool', 5);
}

/** A form with a recording and the model of the workers. */
export function formOf(
  fields: Record<string, string | readonly string[]> = {},
  recording: Buffer = wav(1_000),
): Buffer {
  const named = Object.entries({ model: 'whisper-1', ...fields });
  const parts = named.flatMap(([name, values]): Part[] =>
    [values].flat().map((value) => ({ name, value })),
  );
  return formBody([...parts, { name: 'file', filename: 'a.wav', value: recording }]);
}

/** Sends a form. */
export function sendForm(
  gateway: Pick<TestGateway, 'url'>,
  body: Buffer | ReadableStream<Uint8Array>,
  { path = 'transcriptions', ...init }: RequestInit & { readonly path?: string } = {},
): Promise<Response> {
  return fetch(`${gateway.url}/v1/audio/${path}`, {
    method: 'POST',
    ...init,
    body,
    headers: { 'content-type': FORM_TYPE, ...(init.headers as Record<string, string>) },
    ...(Buffer.isBuffer(body) ? {} : { duplex: 'half' }),
  });
}

/** Cancels a request by its id. */
export async function cancel(gateway: Pick<TestGateway, 'url'>, id: string): Promise<unknown> {
  const url = `${gateway.url}/v1/audio/transcriptions/${encodeURIComponent(id)}/cancel`;
  const answer = await fetch(url, { method: 'POST' });
  return { status: answer.status, ...((await answer.json()) as object) };
}
