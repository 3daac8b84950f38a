import { startProgram } from '../programs/start-program';
import { FRAME_RUN_PROGRAM } from './frame-run-program';

/** The exports of core/assembly/frame-run.ts. Its memory may be used by one merge at a time, and by the next one after it. */
export interface MergeProgram {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  totalsStart(): number;
  useTable(table: number, sources: number): void;
  copyRun(limit: number, count: number, tag: number, to: number, toEnd: number): number;
}

/** Of WebAssembly's memory. */
const PAGE_BYTES = 65_536;

/** A program with memory of its own; null if Node cannot run it. */
export function makeMergeProgram(): MergeProgram | null {
  return startProgram<MergeProgram>(FRAME_RUN_PROGRAM);
}

/** Lets the program's memory have at least `bytes`; false if Node has no room for them. Untouched memory costs nothing. */
export function growTo({ memory }: MergeProgram, bytes: number): boolean {
  const missing = Math.ceil((bytes - memory.buffer.byteLength) / PAGE_BYTES);
  try {
    if (missing > 0) memory.grow(missing);
    return true;
  } catch {
    return false;
  }
}
