/** What a request needs of the model of an audio worker, so that one that cannot do it is never asked. */
export interface AudioNeed {
  readonly model: string;
  readonly task: AudioTask;
  /** ISO 639-1; empty for any. */
  readonly language: string;
  /** Media type of the recording, such as `audio/wav`; empty for speech. */
  readonly contentType: string;
  readonly segments: boolean;
  readonly words: boolean;
  /** Name of a voice; empty unless it is speech. */
  readonly voice: string;
  /** Format of the speech; empty unless it is speech. */
  readonly speechFormat: string;
}

/** What an audio worker does with a request. */
export type AudioTask = 'transcribe' | 'translate' | 'speak';
