import {
  closeSync,
  copyFileSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from 'node:fs';

/** A log larger than this is set aside as `<part>.log.1` and begun anew. */
const MAX_LOG_BYTES = 64 * 1024 ** 2;
const KEPT_AT_START_BYTES = 8 * 1024 ** 2;
const TAIL_INTERVAL_MS = 100;
const READ_BYTES = 64 * 1024;

/**
 * The log of a part. The part writes the file itself: nothing breaks when the supervisor is killed
 * and the part lives on. What it writes is read back for the terminal.
 */
export interface ComponentLog {
  readonly path: string;
  /** File descriptor for the part's stdout and stderr. */
  readonly fd: number;
  /** The last `count` lines written since this log was opened, without frames of stack traces. */
  lastLines(count: number): string[];
  /** Shows what is left and closes the file. */
  close(): void;
}

/** Opens the log for appending; `onLine` gets every complete line that the part writes from now on. */
export function openComponentLog(path: string, onLine: (line: string) => void): ComponentLog {
  setAside(path);
  const fd = openSync(path, 'a+', 0o600);
  const tail = createTail(fd, onLine);
  const timer = setInterval(() => {
    tail.read();
    if (tail.position() > MAX_LOG_BYTES) {
      copyFileSync(path, `${path}.1`);
      ftruncateSync(fd);
      tail.restart();
    }
  }, TAIL_INTERVAL_MS);
  timer.unref();
  return {
    path,
    fd,
    lastLines: (count) => {
      tail.read();
      return tail.recent().slice(-count);
    },
    close: () => {
      clearInterval(timer);
      tail.read();
      closeSync(fd);
    },
  };
}

function setAside(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > KEPT_AT_START_BYTES) renameSync(path, `${path}.1`);
}

interface Tail {
  read(): void;
  recent(): readonly string[];
  position(): number;
  restart(): void;
}

const KEPT_LINES = 50;
/** The frames of a stack would push the message above them out of the few lines that are shown. */
const STACK_FRAME = /^\s+at /;

function createTail(fd: number, onLine: (line: string) => void): Tail {
  let at = fstatSync(fd).size;
  let rest = '';
  const recent: string[] = [];
  const buffer = Buffer.alloc(READ_BYTES);
  const take = (text: string): void => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!STACK_FRAME.test(line) && recent.push(line) > KEPT_LINES) recent.shift();
      onLine(line);
    }
  };
  return {
    read() {
      for (let read = readSync(fd, buffer, 0, READ_BYTES, at); read > 0;) {
        at += read;
        take(buffer.toString('utf8', 0, read));
        read = readSync(fd, buffer, 0, READ_BYTES, at);
      }
    },
    recent: () => (rest === '' ? recent : [...recent, rest]),
    position: () => at,
    restart: () => void (at = 0),
  };
}
