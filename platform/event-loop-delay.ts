import type { Histogram } from './metrics';

const EVERY_MS = 200;

/**
 * Observes every 200 ms by how much a timer is late. While the event loop is blocked, the process answers no
 * request and sends no heartbeat. The histogram of Node's own (`nodejs_eventloop_lag_*`) is reset by every
 * scrape, so two Prometheus servers would each see half of it. Returns what ends the observation.
 */
export function watchEventLoopDelay(
  delay: Pick<Histogram, 'observe'>,
  everyMs = EVERY_MS,
): () => void {
  let dueMs = performance.now() + everyMs;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    delay.observe(Math.max(0, nowMs - dueMs) / 1000);
    dueMs = nowMs + everyMs;
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
