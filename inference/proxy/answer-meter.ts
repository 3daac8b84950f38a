import type { Usage } from '../../core/batch/counts';
import { usageOfEventTail, usageOfJsonTail } from '../../core/openai/usage-tail';
import { AnswerTail } from './answer-tail';
import { EventCounter } from './event-counter';
import { fieldOf, type RawHeaders } from './forwarded-headers';

/** `usage` is among the last members of an answer; `metadata` of `/v1/responses` may follow it. */
const TAIL_BYTES = 16 * 1024;
const DONE = Buffer.from('[DONE]');
/** `[DONE]` and the line breaks after it. */
const DONE_BYTES = 16;

/** Reads what one answer cost, while its bytes pass by. It never holds more than the tail. */
export interface AnswerMeter {
  add(chunk: Buffer): void;
  /** Events so far; 0 if the answer is no event stream. */
  events(): number;
  /** Call it when the answer is complete. The usage is null if the answer has none that can be read. */
  end(): { readonly usage: Usage | null; readonly events: number };
}

/** The meter for an answer with these fields: an event stream, JSON, or something without `usage`. */
export function createAnswerMeter(headers: RawHeaders): AnswerMeter {
  const type = (fieldOf(headers, 'content-type') ?? '').toLowerCase();
  const coding = fieldOf(headers, 'content-encoding');
  // The backend was asked for bytes as they are; the `usage` of a packed answer is not worth unpacking it.
  if (coding !== null && coding.toLowerCase() !== 'identity') return NO_METER;
  if (type.startsWith('text/event-stream')) return eventMeter();
  return type.includes('json') ? jsonMeter() : NO_METER;
}

const NO_METER: AnswerMeter = {
  add: () => undefined,
  events: () => 0,
  end: () => ({ usage: null, events: 0 }),
};

function jsonMeter(): AnswerMeter {
  const tail = new AnswerTail(TAIL_BYTES);
  return {
    add: (chunk) => tail.add(chunk),
    events: () => 0,
    end: () => ({ usage: usageOfJsonTail(tail.read()), events: 0 }),
  };
}

function eventMeter(): AnswerMeter {
  const tail = new AnswerTail(TAIL_BYTES);
  const counter = new EventCounter();
  return {
    add: (chunk) => {
      tail.add(chunk);
      counter.add(chunk);
    },
    events: () => counter.count,
    end: () => {
      const bytes = tail.read();
      const hasDone = bytes.subarray(-DONE_BYTES).includes(DONE);
      return { usage: usageOfEventTail(bytes), events: counter.count - (hasDone ? 1 : 0) };
    },
  };
}
