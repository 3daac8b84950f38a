import type { SessionSettings } from '../../../core/audio/realtime/session-settings';
import { NightshiftError } from '../../../core/errors';
import type { AudioWorkerLink } from '../../../inference/audio/audio-calls';
import type { StreamWorker } from '../../../inference/audio/stream-handle';
import type { WireModel } from '../../../proto/audio-messages';

/** An audio worker, as live sessions use it. */
export type RealtimeWorker = StreamWorker &
  Pick<
    AudioWorkerLink,
    'address' | 'isReady' | 'models' | 'maxStreams' | 'healthReplies' | 'hasNamedModels'
  >;

/** What a session needs of a worker. */
export interface StreamNeed {
  readonly model: string;
  /** ISO 639-1; empty for any. */
  readonly language: string;
  /** Samples per second; null while the client may still change it. */
  readonly rate: number | null;
  readonly vad: boolean;
}

/** One of a worker's streams, taken. It must be released once. */
export interface StreamLease {
  readonly worker: RealtimeWorker;
  release(): void;
}

const MODEL_PARAM = 'session.audio.input.transcription.model';
const LANGUAGE_PARAM = 'session.audio.input.transcription.language';

interface WorkerStreams {
  readonly worker: RealtimeWorker;
  used: number;
  /** The number of Health replies at which it refused a stream; -1 for never. */
  fullAt: number;
}

/** The live streams of all audio workers (docs/design/realtime.md#capacity). */
export class StreamTable {
  readonly #workers: readonly WorkerStreams[];

  constructor(workers: readonly RealtimeWorker[]) {
    this.#workers = workers.map((worker) => ({ worker, used: 0, fullAt: -1 }));
  }

  /** Whether every worker has said once what it serves. */
  get isComplete(): boolean {
    return this.#workers.every(({ worker }) => worker.hasNamedModels);
  }

  /** Takes a stream of the ready worker with the most free ones; null if there is none. */
  take(need: StreamNeed, avoid: RealtimeWorker | null = null): StreamLease | null {
    let best: WorkerStreams | null = null;
    for (const one of this.#workers) {
      if (one.worker === avoid || !canServe(one.worker, need) || freeOf(one) === 0) continue;
      if (best === null || freeOf(one) > freeOf(best)) best = one;
    }
    if (best === null) return null;
    const taken = best;
    taken.used++;
    let isHeld = true;
    const release = (): void => {
      if (isHeld) taken.used--;
      isHeld = false;
    };
    return { worker: taken.worker, release };
  }

  /** Streams that are taken at the worker of an address. */
  usedOf(address: string): number {
    return this.#workers.find(({ worker }) => worker.address === address)?.used ?? 0;
  }

  /** A worker refused a stream for lack of room: it counts as full until its next Health. */
  markFull(worker: RealtimeWorker): void {
    const streams = this.#workers.find((one) => one.worker === worker);
    if (streams !== undefined) streams.fullAt = worker.healthReplies;
  }

  /** Whether a ready worker transcribes live with a model. */
  isReady(model: string): boolean {
    return this.#workers.some(
      ({ worker }) => worker.isReady && worker.models.get(model)?.streaming === true,
    );
  }

  /** Whether a worker of a model detects the ends of turns. */
  hasVad(model: string): boolean {
    return this.#offers(model).some(({ streaming, serverVad }) => streaming && serverVad);
  }

  /** Whether a worker has a model, or had it. */
  hasModel(model: string): boolean {
    return this.#offers(model).length > 0;
  }

  /** @throws not_found if no worker has the model, invalid_request if none transcribes live with it */
  checkModel(model: string, param = MODEL_PARAM): void {
    const offers = this.#offers(model);
    const shown = JSON.stringify(model);
    if (offers.length === 0) {
      const apiCode = 'model_not_found';
      throw new NightshiftError('not_found', `The model ${shown} does not exist.`, {
        param,
        apiCode,
      });
    }
    if (offers.some(({ streaming }) => streaming)) return;
    throw refusal(param, `The model ${shown} does not transcribe live.`);
  }

  /** @throws what {@link checkModel} throws, and invalid_request if no worker can do what is asked for */
  check({ model, language, format, turnDetection }: SessionSettings): void {
    this.checkModel(model ?? '');
    const live = this.#offers(model ?? '').filter(({ streaming }) => streaming);
    if (!live.some((offer) => hasLanguage(offer, language))) {
      throw refusal(LANGUAGE_PARAM, `The model does not know the language ${language}.`);
    }
    if (!live.some((offer) => hasRate(offer, format.rate))) {
      const rates = [...new Set(live.flatMap(({ sampleRatesHz }) => sampleRatesHz))].join(', ');
      const message = `The model does not take ${format.rate} samples per second. Choose one of: ${rates}.`;
      throw refusal('session.audio.input.format.rate', message);
    }
    if (turnDetection && !live.some(({ serverVad }) => serverVad)) {
      const message =
        'The model does not detect the ends of turns: send null, and commit the audio.';
      throw refusal('session.audio.input.turn_detection', message);
    }
  }

  #offers(model: string): WireModel[] {
    return this.#workers.flatMap(({ worker }) => worker.models.get(model) ?? []);
  }
}

function refusal(param: string, message: string): NightshiftError {
  return new NightshiftError('invalid_request', message, { param, apiCode: 'invalid_value' });
}

function freeOf({ worker, used, fullAt }: WorkerStreams): number {
  return fullAt === worker.healthReplies ? 0 : Math.max(0, worker.maxStreams - used);
}

/** Whether a worker is ready and can serve a session now. */
export function canServe(worker: RealtimeWorker, need: StreamNeed): boolean {
  const offer = worker.models.get(need.model);
  return (
    worker.isReady &&
    offer?.streaming === true &&
    hasLanguage(offer, need.language) &&
    (need.rate === null || hasRate(offer, need.rate)) &&
    (!need.vad || offer.serverVad)
  );
}

function hasLanguage({ languages }: WireModel, language: string): boolean {
  return language === '' || languages.length === 0 || languages.includes(language);
}

function hasRate({ sampleRatesHz }: WireModel, rate: number): boolean {
  return sampleRatesHz.length === 0 || sampleRatesHz.includes(rate);
}
