/** The part of the global that is used. It is undefined if Node runs with `--jitless`. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** Compiled once: V8 also keeps what it has found out about a program. */
const compiled = new Map<string, object>();

/**
 * A new instance of a program of core/assembly/, which is given in base64, with memory of its own; null if the machine or
 * the settings of Node do not allow that.
 */
export function startProgram<Exports>(base64: string): Exports | null {
  try {
    const module = compiled.get(base64) ?? new WebAssembly.Module(Buffer.from(base64, 'base64'));
    compiled.set(base64, module);
    return new WebAssembly.Instance(module).exports as Exports;
  } catch {
    return null;
  }
}
