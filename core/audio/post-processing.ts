import type { Transcription } from './transcription';

/** What a stage is told besides the transcript. */
export interface StageContext {
  /** As the recogniser says, ISO 639-1; null if it does not. */
  readonly language: string | null;
  readonly model: string;
}

/** A stage of post-processing. It changes `text` and the texts of segments, and nothing else. */
export type PostProcessing = (text: string, context: StageContext) => string;

/** Told when a stage throws: it is skipped. */
export type OnStageFailure = (error: unknown) => void;

/**
 * Sends a transcript through stages (docs/design/audio.md#post-processing). Words and deltas stay as they were heard.
 * A stage that throws leaves the transcript as it was before.
 */
export function postProcessed(
  transcription: Transcription,
  { stages, model }: { readonly stages: readonly PostProcessing[]; readonly model: string },
  onFailure: OnStageFailure,
): Transcription {
  return stages.reduce((before, stage) => {
    try {
      return withTexts(before, (text) => stage(text, { language: before.language, model }));
    } catch (error) {
      onFailure(error);
      return before;
    }
  }, transcription);
}

function withTexts(transcription: Transcription, change: (text: string) => string): Transcription {
  return {
    ...transcription,
    text: change(transcription.text),
    segments: transcription.segments.map((one) => ({ ...one, text: change(one.text) })),
  };
}
