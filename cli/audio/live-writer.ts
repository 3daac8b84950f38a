import type { Screen } from '../batches/client-io';
import type { LiveEvent } from './live-client';

/** Writes what a session says. */
export interface LiveWriter {
  /** Whether a transcript failed. */
  readonly hasFailed: boolean;
  take(event: LiveEvent): void;
}

const TRANSCRIPTION = 'conversation.item.input_audio_transcription';
/** What a terminal must not take from a model: it would move the cursor or worse. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

/** On a terminal, text appears as it grows; else a line when a turn is done. `json`: every event as a line. */
export function liveWriter(screen: Screen, json: boolean): LiveWriter {
  let hasFailed = false;
  const isTerminal = screen.isTTY === true;
  const clean = (text: unknown): string => String(text).replace(CONTROL, ' ');
  const write = (event: LiveEvent): void => {
    if (event.type === `${TRANSCRIPTION}.delta` && isTerminal) screen.write(clean(event['delta']));
    if (event.type === `${TRANSCRIPTION}.completed`) {
      const text = clean(event['transcript']);
      if (isTerminal) screen.write(text === '' ? '' : '\n');
      else if (text !== '') screen.write(`${text}\n`);
    }
  };
  return {
    get hasFailed() {
      return hasFailed;
    },
    take(event) {
      hasFailed ||= event.type === `${TRANSCRIPTION}.failed`;
      if (json) screen.write(`${JSON.stringify(event)}\n`);
      else write(event);
    },
  };
}
