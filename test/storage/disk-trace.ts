import fs, { type FileHandle } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';

interface TracedFile {
  /** The number of writes; `synced` is this number at the beginning of the last sync. */
  written: number;
  synced: number;
}

/**
 * Traces file operations of this process, and computes what a power cut would leave: bytes that were
 * synced, under names whose folder was synced. Files from before the trace count as durable.
 */
export class DiskTrace {
  /** Completed `datasync`, `sync` and `link` calls in order, with paths below the root. */
  readonly events: string[] = [];
  readonly #root: string;
  readonly #files = new Map<string, TracedFile>();
  readonly #unsafeNames = new Set<string>();
  readonly #paths = new WeakMap<FileHandle, string>();
  readonly #spies: jest.SpyInstance[] = [];

  private constructor(root: string) {
    this.#root = resolve(root);
  }

  /** Starts the trace; {@link stop} ends it. `root` is an existing folder. */
  static async start(root: string): Promise<DiskTrace> {
    const trace = new DiskTrace(root);
    const handles = await handlePrototype(root);
    trace.#watchNames();
    trace.#watchHandles(handles);
    return trace;
  }

  stop(): void {
    for (const spy of this.#spies) spy.mockRestore();
  }

  /** What a power cut would lose now of a file or folder: its bytes, its name, or a name above it. */
  lost(path: string): string[] {
    const lost: string[] = [];
    const file = this.#files.get(resolve(path));
    if (file !== undefined && file.synced < file.written) lost.push(`bytes ${this.#name(path)}`);
    for (let name = resolve(path); name.startsWith(join(this.#root, '/')); name = dirname(name)) {
      if (this.#unsafeNames.has(name)) lost.push(`name ${this.#name(name)}`);
    }
    return lost;
  }

  #watchNames(): void {
    const { open, link, mkdir } = fs;
    this.#spy(fs, 'open', async (...args: Parameters<typeof open>) => {
      const path = resolve(String(args[0]));
      const isNew = /[wax]/.test(String(args[1] ?? 'r')) && !this.#files.has(path);
      const handle = await open(...args);
      this.#paths.set(handle, path);
      if (isNew) this.#created(path, { written: 0, synced: 0 });
      return handle;
    });
    this.#spy(fs, 'link', async (...args: Parameters<typeof link>) => {
      await link(...args);
      const [from, to] = args.map((path) => resolve(String(path))) as [string, string];
      const file = this.#files.get(from) ?? { written: 0, synced: 0 };
      if (file.synced < file.written) this.events.push(`bytes not synced: ${this.#name(from)}`);
      this.#created(to, file);
      this.events.push(`link ${this.#name(to)}`);
    });
    this.#spy(fs, 'mkdir', async (...args: Parameters<typeof mkdir>) => {
      const first = await mkdir(...args);
      if (first === undefined) return first;
      for (let name = resolve(String(args[0])); ; name = dirname(name)) {
        this.#unsafeNames.add(name);
        if (name === resolve(first)) return first;
      }
    });
  }

  #watchHandles(handles: FileHandle): void {
    const { write, datasync, sync } = handles;
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- spied methods have a `this` of their own
    const trace = this;
    this.#spy(handles, 'write', async function (this: FileHandle, ...args: unknown[]) {
      const file = trace.#files.get(trace.#pathOf(this));
      if (file !== undefined) file.written++;
      return Reflect.apply(write, this, args) as unknown;
    });
    for (const [name, original] of [
      ['datasync', datasync],
      ['sync', sync],
    ] as const) {
      this.#spy(handles, name, async function (this: FileHandle) {
        const path = trace.#pathOf(this);
        const before = trace.#files.get(path)?.written ?? 0;
        await original.call(this);
        trace.#synced(path, before);
        trace.events.push(`${name} ${trace.#name(path)}`);
      });
    }
  }

  #synced(path: string, written: number): void {
    const file = this.#files.get(path);
    if (file !== undefined) file.synced = Math.max(file.synced, written);
    for (const name of this.#unsafeNames) {
      if (dirname(name) === path) this.#unsafeNames.delete(name);
    }
  }

  #created(path: string, file: TracedFile): void {
    this.#files.set(path, file);
    this.#unsafeNames.add(path);
  }

  #pathOf(handle: FileHandle): string {
    return this.#paths.get(handle) ?? 'opened before the trace';
  }

  /** The path below the root, without its random parts. */
  #name(path: string): string {
    const name = relative(this.#root, resolve(path)) || '.';
    return name
      .replace(/^(store\/)?tmp\/.+/, '$1tmp/*')
      .replace(/[0-9a-f]{16}(?=\.seg|\.seal)/, '*');
  }

  #spy(target: object, name: string, replacement: unknown): void {
    const spy = jest.spyOn(target as Record<string, () => void>, name);
    this.#spies.push(spy.mockImplementation(replacement as () => void));
  }
}

/** The prototype of all file handles; `folder` is any existing folder. */
export async function handlePrototype(folder: string): Promise<FileHandle> {
  const handle = await fs.open(folder, 'r');
  await handle.close();
  const prototype: unknown = Object.getPrototypeOf(handle);
  return prototype as FileHandle;
}
