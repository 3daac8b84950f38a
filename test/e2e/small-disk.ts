import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A filesystem that is small enough to be filled. */
export interface SmallDisk {
  readonly path: string;
  /** Fills all space except `leaveBytes`. */
  fill(leaveBytes?: number): void;
  /** Frees what `fill` took. */
  free(): void;
  unmount(): void;
}

/** Mounts one. Null if this machine does not allow it: it needs Linux and root. */
export function mountSmallDisk(bytes: number): SmallDisk | null {
  const path = mkdtempSync(join(tmpdir(), 'nightshift-disk-'));
  try {
    const options = ['-t', 'tmpfs', '-o', `size=${bytes},mode=755`, 'tmpfs', path];
    execFileSync('mount', options, { stdio: 'ignore' });
  } catch {
    rmSync(path, { recursive: true });
    return null;
  }
  const filler = join(path, 'filler');
  return {
    path,
    fill: (leaveBytes = 0) => fill(filler, leaveBytes),
    free: () => rmSync(filler, { force: true }),
    unmount: () => {
      execFileSync('umount', ['--lazy', path]);
      rmSync(path, { recursive: true });
    },
  };
}

function fill(filler: string, leaveBytes: number): void {
  const file = openSync(filler, 'a');
  const page = Buffer.alloc(4096);
  try {
    for (;;) {
      const { bavail, bsize } = statfsSync(filler);
      if (bavail * bsize <= leaveBytes) return;
      writeSync(file, page);
    }
  } catch (error) {
    // Another process took the last page.
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}
