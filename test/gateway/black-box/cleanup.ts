const closers: (() => unknown)[] = [];

/** Ends something when the test file ends. */
export function onClose(close: () => unknown): void {
  closers.push(close);
}

/** Ends the processes, servers and connections of a test file, the newest first. */
export async function closeOutside(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}
