import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { TcpProxy } from '../../support/tcp-proxy';

/**
 * How late a server of this process sees requests after they arrived. On a busy machine that is far more
 * than the longest delay of the event loop: a server accepts one connection per turn of the loop, so that
 * the last of twenty simultaneous connections is seen twenty turns later.
 */
export interface Lateness {
  /** Measures requests through this proxy, too, which are delayed twice. */
  alsoThrough(proxy: TcpProxy): void;
  /** Whether a request is a probe. Records its delay; the caller answers it with anything. */
  isProbe(received: IncomingMessage): boolean;
  /** The longest delay since the last call, ms. */
  takeMs(): number;
  close(): void;
}

const PAUSE_MS = 25;
const SAMPLE_MS = 10;
/** Headers of a probe: when it was sent, and through which way. */
const [SENT, WAY] = ['x-probe-sent', 'x-probe-way'];

/** Sends probes to `port` one after the other, each on a new connection. */
export function watchLateness(port: number): Lateness {
  const loop = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  loop.enable();
  /** The port of each way, and since when it has been open. */
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
      // A probe that waited for a closed way says nothing about this process.
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
