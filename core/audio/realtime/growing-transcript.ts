/** Scripts that put no blanks between words. */
const WITHOUT_BLANKS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/**
 * The transcript of one item, which only grows (docs/design/realtime.md#text). A worker changes its hypothesis until a
 * segment is final; what was delivered of it stays, whatever the worker says later.
 */
export class GrowingTranscript {
  #text = '';
  /** Its last code point: to cut it from a long text that was put together costs as much as to copy that. */
  #last = '';
  /** What was delivered of the segment that is not final yet. */
  #open = '';

  /** All that was delivered. */
  get text(): string {
    return this.#text;
  }

  /** A hypothesis, whose first `stableChars` code points will not change. Returns what the transcript gains. */
  partial(text: string, stableChars: number): string {
    const stable = firstCodePoints(text, stableChars).trim();
    // Fewer stable characters than before, or others: the final text decides.
    if (!stable.startsWith(this.#open)) return '';
    const gain = this.#grow(stable.slice(this.#open.length));
    this.#open = stable;
    return gain;
  }

  /** The final text of the segment. Returns what the transcript gains. */
  final(text: string): string {
    const gain = this.#grow(continuation(this.#open, text.trim()));
    this.#open = '';
    return gain;
  }

  /** The whole hypothesis: what was delivered, and the rest of the open segment. */
  hypothesis(text: string): string {
    const rest = continuation(this.#open, text.trim());
    return this.#text + this.#separator(rest) + rest;
  }

  #grow(rest: string): string {
    if (rest === '') return '';
    const gain = this.#separator(rest) + rest;
    this.#text += gain;
    this.#last = lastCodePoint(gain);
    return gain;
  }

  /** Within a segment, the text has its own blanks. */
  #separator(rest: string): string {
    if (this.#text === '' || this.#open !== '' || rest === '') return '';
    const around = (this.#last + firstCodePoints(rest, 1)).replace(/\p{P}/gu, '');
    return WITHOUT_BLANKS.test(around) ? '' : ' ';
  }
}

/**
 * What follows in `text` after the part that was delivered. A worker that took over may have recognised that part
 * differently: then as many words are left out as were delivered, or characters if there are no blanks.
 */
function continuation(delivered: string, text: string): string {
  if (text.startsWith(delivered)) return text.slice(delivered.length);
  if (!/\s/.test(delivered + text))
    return text.slice(firstCodePoints(text, lengthOf(delivered)).length);
  const words = delivered.split(/\s+/).length;
  const skipped = new RegExp(`^(?:\\s*\\S+){1,${words}}`).exec(text);
  return text.slice(skipped?.[0].length ?? 0);
}

function firstCodePoints(text: string, count: number): string {
  let end = 0;
  for (let taken = 0; taken < count && end < text.length; taken++) {
    end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(0, end);
}

function lastCodePoint(text: string): string {
  return [...text.slice(-2)].at(-1) ?? '';
}

function lengthOf(text: string): number {
  return [...text].length;
}
