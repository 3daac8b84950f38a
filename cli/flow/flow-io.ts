import { processIo, type ClientIo, type Screen } from '../batches/client-io';

/** A terminal that is redrawn as a whole. */
export interface FlowScreen extends Screen {
  /** Height of a terminal in lines. */
  readonly rows?: number;
  on(event: 'resize', listener: () => void): unknown;
  off(event: 'resize', listener: () => void): unknown;
}

/** What `nightshift flow` uses of the process. */
export interface FlowIo extends Pick<ClientIo, 'stderr' | 'env' | 'signals' | 'exitWith'> {
  readonly stdout: FlowScreen;
  /**
   * Calls `onKey` for each key until the result is called. Ctrl-C is a key too. Undefined if there is no keyboard.
   */
  readonly readKeys?: (onKey: (key: string) => void) => () => void;
  readonly refreshMs: number;
}

const REFRESH_MS = 1_000;

/** The terminal, keyboard and signals of this process. */
export function processFlowIo(): FlowIo {
  const { stdin, stdout } = process;
  return {
    ...processIo(),
    stdout,
    refreshMs: REFRESH_MS,
    ...(stdin.isTTY ? { readKeys } : {}),
  };
}

function readKeys(onKey: (key: string) => void): () => void {
  const { stdin } = process;
  const onData = (data: Buffer): void => onKey(data.toString('latin1'));
  stdin.setRawMode(true);
  stdin.on('data', onData);
  stdin.resume();
  return () => {
    stdin.off('data', onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
