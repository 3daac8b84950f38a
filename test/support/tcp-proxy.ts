import { connect, createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

/**
 * - `pass`: bytes go through
 * - `refuse`: new connections are refused, and open ones are reset
 * - `hang`: connections open and stay open, but deliver nothing until the mood changes
 */
export type ProxyMood = 'pass' | 'refuse' | 'hang';

/** A server's address that can be made to fail like a network or a machine does. */
export interface TcpProxy {
  readonly port: number;
  /** Since when it has passed bytes, Unix ms; Infinity while it does not. */
  readonly openSinceMs: number;
  /** Resolves when the new mood applies, to open connections too. */
  become(mood: ProxyMood): Promise<void>;
  close(): Promise<void>;
}

/** A proxy in front of `127.0.0.1:target` on a port of its own. It passes everything at first. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let mood: ProxyMood = 'pass';
  let openSinceMs = Date.now();
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    const pair = [near, far] as const;
    pairs.add(pair);
    near.pipe(far).pipe(near);
    for (const socket of pair) {
      socket.setNoDelay(true);
      if (mood === 'hang') socket.pause();
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        for (const either of pair) either.destroy();
      });
    }
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => void server.listen(port, '127.0.0.1', resolve));
  const refuse = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get openSinceMs() {
      return openSinceMs;
    },
    become: async (next) => {
      if (next === mood) return;
      openSinceMs = Infinity;
      const before = mood;
      mood = next;
      if (next === 'refuse') return refuse();
      for (const pair of pairs) {
        for (const socket of pair)
          if (next === 'hang') socket.pause();
          else socket.resume();
      }
      if (before === 'refuse') await listen(port);
      if (mood === 'pass') openSinceMs = Date.now();
    },
    close: async () => {
      if (mood !== 'refuse') await refuse();
    },
  };
}
