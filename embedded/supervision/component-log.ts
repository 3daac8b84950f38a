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

/** A log that grows beyond this while its component runs is moved to `<component>.log.1`. */
const MAX_LOG_BYTES = 64 * 1024 ** 2;
/** A log that is larger than this when its component starts is moved to `<component>.log.1` too. */
const KEPT_AT_START_BYTES = 8 * 1024 ** 2;
const TAIL_INTERVAL_MS = 100;
const READ_BYTES = 64 * 1024;

/**
 * The log of a component. The component writes to the file itself and not through a pipe of the
 * supervisor: if the supervisor is killed, the component lives on and its log continues. The supervisor
 * reads the file to show lines on the terminal (docs/design/embedded-stack.md#logs).
 */
export interface ComponentLog {
  readonly path: string;
  /** File descriptor for the component's stdout and stderr. */
  readonly fd: number;
  /** The last `count` lines since the log was opened, without stack frames. */
  lastLines(count: number): string[];
  /** Passes on the remaining lines and closes the file. Idempotent. */
  close(): void;
}

/** Opens the log for appending. `onLine` gets every complete line written from now on. */
export function openComponentLog(path: string, onLine: (line: string) => void): ComponentLog {
  rotateAtStart(path);
  const fd = openSync(path, 'a+', 0o600);
  const tail = createTail(fd, onLine);
  const timer = setInterval(() => {
    tail.read();
    if (tail.position() > MAX_LOG_BYTES) {
      // Copied and truncated, not renamed: the component keeps its file descriptor.
      copyFileSync(path, `${path}.1`);
      ftruncateSync(fd);
      tail.restart();
    }
  }, TAIL_INTERVAL_MS);
  timer.unref();
  let isOpen = true;
  return {
    path,
    fd,
    lastLines: (count) => {
      tail.read();
      return tail.recent().slice(-count);
    },
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      clearInterval(timer);
      tail.read();
      closeSync(fd);
    },
  };
}

/** The text of an error: `what`, the last `count` lines of the log, and its path. */
export function withLastLines(what: string, log: ComponentLog, count: number): string {
  const lines = log.lastLines(count).map((line) => `  ${line}`);
  const end = lines.length === 0 ? 'It wrote nothing.' : `Its last lines:\n${lines.join('\n')}`;
  return `${what}. ${end}\nThe whole log: ${log.path}`;
}

function rotateAtStart(path: string): void {
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
/** Stack frames are not kept: they would push out the message above them. */
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
