/**
 * Lets a suspect line be sent while nothing else is in flight in its process. While a suspect waits, no
 * other try begins. The suspect begins once everything in flight has returned. If it kills the process, no
 * other request is lost, and the suspect is the only possible cause
 * (docs/design/execution.md#exclusive-sends).
 */
export class ExclusiveGate {
  readonly #suspects: symbol[] = [];
  #inFlight = 0;

  /** Requests an exclusive send. Suspects are served in the order of their requests. */
  request(suspect: symbol): void {
    this.#suspects.push(suspect);
  }

  /** Ends the request of `suspect`. The next suspect goes on, or all other lines if there is none. */
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

  /** Call it when a try begins. */
  enter(): void {
    this.#inFlight++;
  }

  /** Call it when a try has ended, with any outcome. */
  leave(): void {
    this.#inFlight--;
  }
}
