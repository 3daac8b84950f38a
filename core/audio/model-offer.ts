import type { AudioNeed, AudioTask } from './audio-need';

/** What a model of an audio worker can do. An empty list means "any". */
export interface ModelOffer {
  /** `TRANSCRIBE`, `TRANSLATE`, `SPEAK`. */
  readonly tasks: readonly string[];
  readonly languages: readonly string[];
  readonly contentTypes: readonly string[];
  readonly segments: boolean;
  readonly words: boolean;
  readonly voices: readonly string[];
  readonly speechFormats: readonly string[];
}

/** What a model lacks for a request. */
export interface MissingOffer {
  /** The parameter of OpenAI's route. */
  readonly param: string;
  readonly message: string;
}

const TASK_WORDS: Readonly<Record<AudioTask, string>> = {
  transcribe: 'transcribe',
  translate: 'translate',
  speak: 'speak',
};

/** What a model lacks for a request; null if it can do it (docs/design/audio-scheduling.md#choice-of-a-worker). */
export function missingOffer(offer: ModelOffer, need: AudioNeed): MissingOffer | null {
  const { model, task } = need;
  if (!includes(offer.tasks, task.toUpperCase())) {
    return missing('model', `The model ${JSON.stringify(model)} does not ${TASK_WORDS[task]}.`);
  }
  if (task === 'speak') return missingSpeech(offer, need);
  if (need.language !== '' && !includes(offer.languages, need.language)) {
    return missing('language', unknown('language', need.language, offer.languages));
  }
  if (!includes(offer.contentTypes, need.contentType)) {
    return missing('file', unknown('type of file', need.contentType, offer.contentTypes));
  }
  const granularities = 'timestamp_granularities';
  if (need.words && !offer.words) {
    return missing(granularities, `The model ${JSON.stringify(model)} gives no times of words.`);
  }
  if (need.segments && !offer.segments) {
    return missing(granularities, `The model ${JSON.stringify(model)} gives no segments.`);
  }
  return null;
}

function missingSpeech(offer: ModelOffer, { voice, speechFormat }: AudioNeed): MissingOffer | null {
  if (!includes(offer.voices, voice)) {
    return missing('voice', unknown('voice', voice, offer.voices));
  }
  if (!includes(offer.speechFormats, speechFormat)) {
    return missing('response_format', unknown('format', speechFormat, offer.speechFormats));
  }
  return null;
}

function includes(offered: readonly string[], wanted: string): boolean {
  return offered.length === 0 || offered.includes(wanted);
}

function unknown(what: string, value: string, offered: readonly string[]): string {
  return `The model has no ${what} ${JSON.stringify(value)}. Choose one of: ${offered.join(', ')}.`;
}

function missing(param: string, message: string): MissingOffer {
  return { param, message };
}
