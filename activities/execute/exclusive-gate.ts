/**
 * Lets a suspected line run alone in its process (execution §3, poison): while somebody asks for
 * that, nobody else begins a try; the suspect begins when all others have come back. If it kills the
 * process, it takes nothing with it.
 */
export class ExclusiveGate {
  readonly #suspects: symbol[] = [];
  #inFlight = 0;

  /** Asks to run alone; served first come, first served. */
  request(suspect: symbol): void {
    this.#suspects.push(suspect);
  }

  /** Lets the next suspect, or everybody, go on. */
  release(suspect: symbol): void {
    const at = this.#suspects.indexOf(suspect);
    if (at !== -1) this.#suspects.splice(at, 1);
  }

  /** Whether a try may begin now; `suspect` is null for ordinary chunks. */
  mayBegin(suspect: symbol | null): boolean {
    const first = this.#suspects[0];
    if (first === undefined) return suspect === null;
    return first === suspect && this.#inFlight === 0;
  }

  /** A try begins. */
  enter(): void {
    this.#inFlight++;
  }

  /** A try has ended, however. */
  leave(): void {
    this.#inFlight--;
  }
}
