import { GrowingTranscript } from './growing-transcript';
import type { RealtimeError, RealtimeUsage, ServerEvent } from './server-event';

/** One item: a turn of the speaker, and its transcript. */
interface Item {
  readonly id: string;
  /** Where its audio begins in the session, bytes. */
  readonly start: number;
  /** Where it ends; null until it is committed. */
  end: number | null;
  readonly transcript: GrowingTranscript;
  hasStarted: boolean;
  hasStopped: boolean;
}

const TRANSCRIPTION = 'conversation.item.input_audio_transcription';

/**
 * The items of a session. A worker transcribes them one after the other, so its events are about the first item that is
 * not done: a committed one, or else the one that grows (docs/design/realtime.md#items).
 */
export class ItemSequence {
  readonly #newId: () => string;
  /** Committed and not done, oldest first. */
  readonly #waiting: Item[] = [];
  #growing: Item;
  #lastCommitted: string | null = null;

  constructor(newId: () => string) {
    this.#newId = newId;
    this.#growing = this.#newItem(0);
  }

  /** How many committed items are not done. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Where the item begins that grows, bytes. */
  get growingFrom(): number {
    return this.#growing.start;
  }

  /** Whether the worker is heard about an item that grows. */
  get hasSpeech(): boolean {
    const { hasStarted, transcript } = this.#growing;
    return hasStarted || transcript.text !== '';
  }

  /** The item that grows ends at `end`. */
  commit(end: number): ServerEvent {
    const item = this.#growing;
    item.end = end;
    this.#waiting.push(item);
    this.#growing = this.#newItem(end);
    const previous = this.#lastCommitted;
    this.#lastCommitted = item.id;
    return { type: 'input_audio_buffer.committed', item_id: item.id, previous_item_id: previous };
  }

  /** The item that grows is given up. A new one begins at `start`. */
  clear(start: number): void {
    this.#growing = this.#newItem(start);
  }

  speechStarted(audioStartMs: number): ServerEvent[] {
    const item = this.#head;
    if (item.hasStarted) return [];
    item.hasStarted = true;
    const type = 'input_audio_buffer.speech_started';
    return [{ type, item_id: item.id, audio_start_ms: audioStartMs }];
  }

  /** The turn ends at `end` bytes, by the worker's own detection. */
  speechStopped(audioEndMs: number, end: number): ServerEvent[] {
    const item = this.#head;
    const stopped: ServerEvent[] = [];
    if (item.hasStarted && !item.hasStopped) {
      const type = 'input_audio_buffer.speech_stopped';
      stopped.push({ type, item_id: item.id, audio_end_ms: audioEndMs });
    }
    item.hasStopped = true;
    return item.end === null ? [...stopped, this.commit(end)] : stopped;
  }

  partial(text: string, stableChars: number): ServerEvent[] {
    return this.#delta(this.#head, this.#head.transcript.partial(text, stableChars));
  }

  final(text: string): ServerEvent[] {
    return this.#delta(this.#head, this.#head.transcript.final(text));
  }

  hypothesis(text: string): ServerEvent {
    const { id, transcript } = this.#head;
    const type = 'transcript.partial';
    return { type, item_id: id, content_index: 0, text: transcript.hypothesis(text) };
  }

  /** The first committed item is done. @param usage of so many bytes of audio */
  done(usage: (bytes: number) => RealtimeUsage): ServerEvent[] {
    const item = this.#waiting.shift();
    if (item === undefined) return [];
    const { id, start, end, transcript } = item;
    return [
      {
        type: `${TRANSCRIPTION}.completed`,
        item_id: id,
        content_index: 0,
        transcript: transcript.text,
        usage: usage((end ?? start) - start),
      },
    ];
  }

  /** No item will be done: each that is committed has failed, and the one that grows if it has audio. */
  fail(error: RealtimeError, audioEnd: number): ServerEvent[] {
    const failed = this.#waiting.splice(0);
    if (audioEnd > this.#growing.start || this.hasSpeech) failed.push(this.#growing);
    this.clear(audioEnd);
    const type = `${TRANSCRIPTION}.failed` as const;
    return failed.map(({ id }) => ({ type, item_id: id, content_index: 0, error }));
  }

  get #head(): Item {
    return this.#waiting[0] ?? this.#growing;
  }

  #delta({ id }: Item, delta: string): ServerEvent[] {
    const type = `${TRANSCRIPTION}.delta` as const;
    return delta === '' ? [] : [{ type, item_id: id, content_index: 0, delta }];
  }

  #newItem(start: number): Item {
    const transcript = new GrowingTranscript();
    const flags = { hasStarted: false, hasStopped: false };
    return { id: this.#newId(), start, end: null, transcript, ...flags };
  }
}
