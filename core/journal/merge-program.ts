import { FRAME_RUN_PROGRAM } from './frame-run-program';

/** The exports of core/assembly/frame-run.ts. Its memory may be used by one merge at a time, and by the next one after it. */
export interface MergeProgram {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  totalsStart(): number;
  useTable(table: number, sources: number): void;
  copyRun(limit: number, count: number, tag: number, to: number, toEnd: number): number;
}

/** The part of the global that is used. It is undefined if Node runs with `--jitless`. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

const PAGE_BYTES = 65_536;

let compiled: object | null = null;

/** A program with memory of its own; null if Node cannot run it. */
export function makeMergeProgram(): MergeProgram | null {
  try {
    // Compiled once: V8 also keeps what it has found out about the program.
    compiled ??= new WebAssembly.Module(Buffer.from(FRAME_RUN_PROGRAM, 'base64'));
    return new WebAssembly.Instance(compiled).exports as MergeProgram;
  } catch {
    return null;
  }
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
