/**
 * Lets a suspect line run alone in its process. While a suspect asks for that, no other try begins, and
 * the suspect begins once everything in flight has returned. If it kills the process, it takes nothing
 * else with it, and its guilt is proven (docs/design/execution.md#exclusive-sends).
 */
export class ExclusiveGate {
  readonly #suspects: symbol[] = [];
  #inFlight = 0;

  /** Asks to run alone. Suspects are served in the order in which they asked. */
  request(suspect: symbol): void {
    this.#suspects.push(suspect);
  }

  /** Lets the next suspect, or everything else, go on. */
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

  /** A try has ended, whatever its outcome. */
  leave(): void {
    this.#inFlight--;
  }
}
