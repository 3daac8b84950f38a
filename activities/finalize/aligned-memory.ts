/** The part of the global that is used. It is undefined if Node runs with `--jitless`. */
declare const WebAssembly:
  | { readonly Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer } }
  | undefined;

const WASM_PAGE_BYTES = 65_536;

/**
 * Zeroed memory that begins with a page of the system, so that files can be written from it past the page cache
 * (docs/design/journal.md#direct-writes). Memory of WebAssembly is what Node has of that kind; what was never touched
 * costs nothing. Without it, memory begins anywhere, and files are written through the page cache.
 */
export function alignedMemory(bytes: number): Buffer {
  if (typeof WebAssembly === 'undefined') return Buffer.alloc(bytes);
  const { buffer } = new WebAssembly.Memory({ initial: Math.ceil(bytes / WASM_PAGE_BYTES) });
  return Buffer.from(buffer, 0, bytes);
}
