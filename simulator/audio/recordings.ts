import { createHash } from 'node:crypto';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type {
  WireBatchEvent,
  WireBatchPart,
  WireFileEvent,
  WireFileOptions,
  WireFilePart,
} from '../../proto/audio-messages';
import type { Calls, TakenCall } from './calls';
import type { AudioSettings } from './settings';
import { deltasOf, durationOf, type Recording, transcriptOf } from './speech';

type FileRpc = ServerDuplexStream<WireFilePart, Partial<WireFileEvent>>;
type BatchRpc = ServerDuplexStream<WireBatchPart, Partial<WireBatchEvent>>;

/** What recordings are answered with. */
export interface RecordingContext {
  readonly calls: Calls;
  settings(): AudioSettings;
}

/** A recording that arrives. */
class Arriving {
  readonly options: WireFileOptions;
  /** In a batch, its end has been marked. */
  hasEnded = false;
  readonly #hash = createHash('sha256');
  #bytes = 0;

  constructor(options: WireFileOptions) {
    this.options = options;
  }

  add(chunk: Buffer): void {
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
  }

  /** An aborted call emits `end` too: what arrived then must not be taken for a recording. */
  get isComplete(): boolean {
    return this.hasEnded || this.#bytes >= this.options.size;
  }

  finish(calls: Calls): Recording {
    const hash = this.#hash.digest();
    calls.noteRecording(this.options.requestId, this.#bytes, hash.toString('hex'));
    return { options: this.options, bytes: this.#bytes, hash };
  }
}

/** Answers one recording. */
export function answerFile(rpc: FileRpc, context: RecordingContext): void {
  const { calls, settings } = context;
  let arriving: Arriving | null = null;
  let taken: TakenCall | null = null;
  rpc.on('data', (part: WireFilePart) => {
    if ('chunk' in part) {
      arriving?.add(part.chunk);
      slowDown(rpc, part.chunk.length, settings());
      return;
    }
    arriving = new Arriving(part.options);
    taken = calls.take('file', part.options.requestId, rpc);
  });
  rpc.on('end', () => {
    if (taken === null || arriving === null) return;
    if (!arriving.isComplete) return rpc.end();
    const call = taken;
    const recording = arriving.finish(calls);
    call.after(timeOf([recording], settings()), () => {
      const result = transcriptOf(recording);
      if (recording.options.wantDeltas) {
        for (const delta of deltasOf(result)) rpc.write({ delta });
      }
      rpc.write({ result });
      call.end();
      rpc.end();
    });
  });
}

/** Answers several recordings after one time for all of them. */
export function answerBatch(rpc: BatchRpc, context: RecordingContext): void {
  const { calls, settings } = context;
  const arriving = new Map<number, Arriving>();
  let taken: TakenCall | null | undefined;
  rpc.on('data', ({ item, part = null, end = false }: WireBatchPart) => {
    const known = arriving.get(item);
    if (end && known !== undefined) known.hasEnded = true;
    if (part === null) return;
    if ('chunk' in part) return known?.add(part.chunk);
    const id = String(rpc.metadata.get('x-request-id')[0] ?? part.options.requestId);
    if (taken === undefined) taken = calls.take('batch', id, rpc);
    arriving.set(item, new Arriving(part.options));
  });
  rpc.on('end', () => {
    const isComplete = [...arriving.values()].every(({ hasEnded }) => hasEnded);
    if (taken === null || taken === undefined) return;
    if (!isComplete) return rpc.end();
    const call = taken;
    calls.stats.batch_sizes.push(arriving.size);
    const recordings = [...arriving].map(([item, one]) => [item, one.finish(calls)] as const);
    const all = recordings.map(([, recording]) => recording);
    call.after(timeOf(all, settings()), () => {
      for (const [item, recording] of recordings) {
        rpc.write({ item, event: { result: transcriptOf(recording) } });
      }
      call.end();
      rpc.end();
    });
  });
}

/** How long a call takes, ms. */
function timeOf(recordings: readonly Recording[], settings: AudioSettings): number {
  const seconds = recordings.reduce((sum, one) => sum + durationOf(one), 0);
  const { base_ms: base, item_ms: perItem, audio_sec_ms: perSecond } = settings;
  return base + perItem * recordings.length + perSecond * seconds;
}

function slowDown(rpc: FileRpc, bytes: number, { read_bytes_per_sec: rate }: AudioSettings): void {
  if (rate === 0) return;
  rpc.pause();
  setTimeout(() => rpc.resume(), (1_000 * bytes) / rate);
}
