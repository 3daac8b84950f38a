import { recognize } from '../speech/recognizer';

/** A transcript as Transcribe writes it to the bucket of its output; the times in it are texts. */
export function transcriptFile(jobName: string, audio: Buffer, languageCode: string): Buffer {
  const { text, words } = recognize(audio);
  const pronounced = words.map((word, id) => {
    return {
      id,
      type: 'pronunciation',
      alternatives: [{ confidence: '0.99', content: word.text }],
      start_time: seconds(word.startMs),
      end_time: seconds(word.endMs),
    };
  });
  const stop = {
    id: pronounced.length,
    type: 'punctuation',
    alternatives: [{ confidence: '0.0', content: '.' }],
  };
  const items = [...pronounced, stop];
  const segment = {
    id: 0,
    transcript: text,
    start_time: pronounced[0]?.start_time ?? '0.0',
    end_time: pronounced.at(-1)?.end_time ?? '0.0',
    items: items.map(({ id }) => id),
  };
  const results = {
    language_code: languageCode,
    transcripts: [{ transcript: text }],
    items,
    audio_segments: [segment],
  };
  const file = { jobName, accountId: '000000000000', status: 'COMPLETED', results };
  return Buffer.from(JSON.stringify(file));
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}
