import { InvalidArgumentError } from 'commander';

/** The value of a flag that takes a TCP port; 0 lets the system choose one. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('expected a port between 0 and 65535');
}
