import type { Transcription } from '../../core/audio/transcription';
import type { AudioConfig } from '../../platform/config-audio';
import type { Logger } from '../../platform/logger';
import type { RequestContext } from '../requests/gateway-exchange';
import type { AudioScheduler } from './job';
import type { Spool } from './spool';

/** Applies the stages of the settings for a model (docs/design/audio.md#post-processing). It never throws. */
export type PostProcess = (transcription: Transcription, model: string) => Transcription;

/** What the audio routes need besides what every request does. */
export interface AudioRoutes {
  readonly settings: Pick<AudioConfig, 'max_file_bytes' | 'max_input_characters' | 'scheduler'>;
  readonly scheduler: AudioScheduler;
  readonly spool: Spool;
  readonly postProcess: PostProcess;
  /** Speech begins, so long after its request. */
  onSpeechBegun(ttfbMs: number): void;
}

/** What a request of an audio route needs. */
export interface AudioContext extends RequestContext {
  readonly audio: AudioRoutes;
  readonly logger: Logger;
}
