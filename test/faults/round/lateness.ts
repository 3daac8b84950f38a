import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { TcpProxy } from '../../support/tcp-proxy';

/**
 * How much later than it was there a request is seen by a server of this process. On a busy machine
 * that is far more than the longest delay of the event loop: a server accepts one connection each time
 * round, so that of twenty opened at once the last is seen twenty rounds later.
 */
export interface Lateness {
  /** Measures what comes through this proxy, too: it waits twice. */
  alsoThrough(proxy: TcpProxy): void;
  /** Whether a request is one of these; it is noted then, and wants any answer. */
  isProbe(received: IncomingMessage): boolean;
  /** The longest since the last call, ms. */
  takeMs(): number;
  close(): void;
}

const PAUSE_MS = 25;
const SAMPLE_MS = 10;
/** A header that says when the probe was sent, and one that says which way. */
const [SENT, WAY] = ['x-probe-sent', 'x-probe-way'];

/** Probes are sent to `port` one after the other, each on a connection of its own. */
export function watchLateness(port: number): Lateness {
  const loop = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  loop.enable();
  /** Of each way: its port, and since when it has been open. */
  const ways: { port: number; openSinceMs(): number }[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let longestMs = 0;
  let closed = false;

  function add(way: (typeof ways)[number]): void {
    const name = String(ways.push(way) - 1);
    const again = (): void => {
      if (closed) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        const headers = { [SENT]: String(Date.now()), [WAY]: name };
        const probe = request({ port: way.port, host: '127.0.0.1', agent: false, headers });
        probe.on('response', (response) => response.resume());
        probe.on('error', () => undefined);
        probe.on('close', again);
        probe.end();
      }, PAUSE_MS);
      timers.add(timer.unref());
    };
    again();
  }

  add({ port, openSinceMs: () => 0 });
  return {
    alsoThrough: (proxy) => add({ port: proxy.port, openSinceMs: () => proxy.openSinceMs }),
    isProbe: ({ headers }) => {
      const way = ways[Number(headers[WAY] ?? NaN)];
      if (way === undefined) return false;
      const sentMs = Number(headers[SENT]);
      // What a closed way has held up tells nothing of this process.
      if (sentMs > way.openSinceMs()) longestMs = Math.max(longestMs, Date.now() - sentMs);
      return true;
    },
    takeMs: () => {
      const loopMs = Math.max(0, loop.max / 1e6 - SAMPLE_MS);
      const tookMs = Math.max(longestMs, loopMs);
      loop.reset();
      longestMs = 0;
      return tookMs;
    },
    close: () => {
      closed = true;
      loop.disable();
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
