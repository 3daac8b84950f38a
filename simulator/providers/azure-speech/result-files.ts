import { recognize, type SpokenWord } from '../speech/recognizer';

/** A recording of a job. */
export interface SpeechSource {
  readonly url: string;
  /** Null if the address leads nowhere. */
  readonly audio: Buffer | null;
  /** Whether its format is not one that the service reads. */
  readonly isUnreadable: boolean;
  /** Whether the service fails to transcribe it. */
  readonly isLost: boolean;
}

/** The result file of a recording. Times are ticks of 100 ns, as numbers with a fraction. */
export function transcriptionFile(url: string, audio: Buffer, locale: string): Buffer {
  const { text, words, durationMs } = recognize(audio);
  const phrase = {
    recognitionStatus: 'Success',
    channel: 0,
    ...spanOf(words[0]?.startMs ?? 0, words.at(-1)?.endMs ?? 0),
    locale,
    nBest: [
      {
        confidence: 0.9,
        display: text,
        words: words.map((word) => ({ word: word.text, ...spanOfWord(word) })),
        displayWords: words.map((word) => ({ displayText: word.text, ...spanOfWord(word) })),
      },
    ],
  };
  const file = {
    source: url,
    durationInTicks: durationMs * TICKS_PER_MS,
    combinedRecognizedPhrases: [{ channel: 0, display: text }],
    recognizedPhrases: [phrase],
  };
  return Buffer.from(JSON.stringify(file));
}

/** The report of an ended job. */
export function reportFile(sources: readonly SpeechSource[]): Buffer {
  const details = sources.map(({ url: source, audio, isUnreadable, isLost }) => {
    if (isUnreadable) return failed(source, 'InvalidData', 'The audio format is not supported.');
    if (audio === null) return failed(source, 'InvalidUri', 'The address could not be read.');
    if (isLost) return failed(source, 'InternalServerError', 'Something went wrong.');
    return { source, status: 'Succeeded' };
  });
  const failures = details.filter(({ status }) => status === 'Failed').length;
  const counts = {
    successfulTranscriptionsCount: details.length - failures,
    failedTranscriptionsCount: failures,
  };
  return Buffer.from(JSON.stringify({ ...counts, details }));
}

const TICKS_PER_MS = 10_000;

function failed(source: string, errorKind: string, errorMessage: string) {
  return { source, status: 'Failed', errorKind, errorMessage };
}

function spanOfWord({ startMs, endMs }: SpokenWord) {
  return spanOf(startMs, endMs);
}

function spanOf(startMs: number, endMs: number) {
  return {
    offsetInTicks: startMs * TICKS_PER_MS,
    durationInTicks: (endMs - startMs) * TICKS_PER_MS,
  };
}
