import { makeMergeProgram, type MergeProgram } from '../../../core/journal/merge-program';

/** After this time without a merge its memory is given back to the system. */
const KEPT_MS = 60_000;

/**
 * Keeps the program of the merge that ended last, and its memory, for the next one. Memory that a process has not touched
 * yet costs up to 11 µs for each 4 KiB in a virtual machine: of a batch of 20,000 lines, 10 to 30 of 60 to 110 ms until its
 * files were complete.
 */
export class KeptProgram {
  readonly #keptMs: number;
  #kept: MergeProgram | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(keptMs = KEPT_MS) {
    this.#keptMs = keptMs;
  }

  /** A program that no other merge uses; null if Node cannot run it. */
  take(): MergeProgram | null {
    const kept = this.#kept;
    this.#drop();
    return kept ?? makeMergeProgram();
  }

  /** Call it once, when nothing reads from or writes to its memory any more. */
  giveBack(program: MergeProgram): void {
    this.#drop();
    this.#kept = program;
    this.#timer = setTimeout(() => this.#drop(), this.#keptMs).unref();
  }

  #drop(): void {
    this.#kept = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
