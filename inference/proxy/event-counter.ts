const NEWLINE = 0x0a;
const FIELD = Buffer.from('data:');

/**
 * Counts the events of an event stream by their `data:` lines, over pieces of any size. Model servers send one such
 * line per event. Lines that end in a carriage return alone are not recognised; no model server sends them.
 */
export class EventCounter {
  #count = 0;
  /** Bytes of `data:` that the current line began with; -1 once it differs or was counted. */
  #matched = 0;

  get count(): number {
    return this.#count;
  }

  add(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#matched >= 0) at = this.#match(chunk, at);
      if (this.#matched >= 0) return;
      const newline = chunk.indexOf(NEWLINE, at);
      if (newline === -1) return;
      this.#matched = 0;
      at = newline + 1;
    }
  }

  /** Goes on comparing the beginning of the line. @returns the first position that was not compared */
  #match(chunk: Buffer, at: number): number {
    while (at < chunk.length && chunk[at] === FIELD[this.#matched]) {
      at++;
      if (++this.#matched === FIELD.length) {
        this.#count++;
        this.#matched = -1;
        return at;
      }
    }
    if (at < chunk.length) this.#matched = -1;
    return at;
  }
}
