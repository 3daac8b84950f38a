import { recognize } from '../speech/recognizer';

/** The transcript of a recording, a `BatchRecognizeResults`. */
export function transcriptFile(audio: Buffer, languageCode: string): Buffer {
  const { text, words, durationMs } = recognize(audio);
  const result = {
    alternatives: [
      {
        transcript: text,
        confidence: 0.9,
        words: words.map(({ text: word, startMs, endMs }) => ({
          // A duration of 0 s is left out.
          ...(startMs === 0 ? {} : { startOffset: duration(startMs) }),
          endOffset: duration(endMs),
          word,
        })),
      },
    ],
    resultEndOffset: duration(durationMs),
    languageCode: languageCode.toLowerCase(),
  };
  const metadata = { totalBilledDuration: `${Math.ceil(durationMs / 1_000)}s` };
  return Buffer.from(JSON.stringify({ results: [result], metadata }));
}

function duration(ms: number): string {
  return `${(ms / 1_000).toFixed(3)}s`;
}
