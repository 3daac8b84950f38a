/** The part of the global that is used. It is undefined if Node runs with `--jitless`. */
declare const WebAssembly:
  | { readonly Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer } }
  | undefined;

const WASM_PAGE_BYTES = 65_536;

/**
 * Zeroed blocks that begin with a page of the system, so that files can be written from them past the page cache
 * (docs/design/journal.md#direct-writes). Memory of WebAssembly is what Node has of that kind; a block that was never
 * touched costs nothing. Without it, blocks begin anywhere, and files are written through the page cache.
 *
 * @param bytes of each; a multiple of 64 KiB
 */
export function alignedBlocks(count: number, bytes: number): Buffer[] {
  const memory =
    typeof WebAssembly === 'undefined'
      ? new ArrayBuffer(count * bytes)
      : new WebAssembly.Memory({ initial: (count * bytes) / WASM_PAGE_BYTES }).buffer;
  return Array.from({ length: count }, (_, i) => Buffer.from(memory, i * bytes, bytes));
}
