import { openConnectionPool, type ConnectionPoolOptions } from '../../platform/http-client/pool';
import { engineLoadOf, type EngineLoad } from './engine-load';
import { probeRequest, type ProbeAnswer } from './probe-request';
import { Readiness, type ProbeResult } from './readiness';

/** How one backend is probed. */
export interface BackendProbeOptions {
  /** Base URL of the backend. The paths below are those of its host, not under the path of this URL. */
  readonly url: string;
  /** Path that answers 2xx if the backend is ready. */
  readonly path: string;
  /** Path of the engine's metrics, or null to leave them alone. */
  readonly metricsPath: string | null;
  readonly authorization: string | null;
  readonly tls: ConnectionPoolOptions['tls'];
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** So many failures in a row make the backend not ready. */
  readonly fall: number;
  /** Called after every probe, and again after every reading of metrics. */
  readonly onProbed: () => void;
}

/** So many failed readings in a row, and the metrics no longer count. */
const MAX_MISSED_READINGS = 3;

/**
 * Asks one backend at an interval whether it is ready, over a connection of its own, so that a probe never waits
 * behind requests. The first probe begins at once. The timers do not keep the process alive.
 */
export class BackendProbe {
  readonly #options: BackendProbeOptions;
  readonly #readiness: Readiness;
  readonly #pool;
  #load: EngineLoad | null = null;
  #missed = 0;
  #timer: NodeJS.Timeout | null = null;
  #abort: (() => void) | null = null;
  #isClosed = false;

  constructor(options: BackendProbeOptions) {
    this.#options = options;
    const { fall, intervalMs, timeoutMs, tls, url } = options;
    this.#readiness = new Readiness({ fall, answerCountsMs: 2 * intervalMs });
    this.#pool = openConnectionPool(new URL(url).origin, { connections: 1, timeoutMs, tls });
    void this.#round();
  }

  /** False before the first probe has succeeded. */
  get isReady(): boolean {
    return this.#readiness.isReady;
  }

  /** Why the backend is not ready; null if it is. */
  get reason(): string | null {
    return this.#readiness.reason;
  }

  /** The last known load; null if it is not read, or was missed three times. */
  get load(): EngineLoad | null {
    return this.#load;
  }

  /** A real request got a 2xx. */
  onAnswered(): void {
    this.#readiness.onAnswered(performance.now());
  }

  /** The connection of a real request was refused. */
  onRefused(): void {
    this.#readiness.onProbed({ kind: 'refused' }, performance.now());
    this.#options.onProbed();
  }

  /** Ends a probe that runs, and closes the connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#abort?.();
    await this.#pool.destroy();
  }

  async #round(): Promise<void> {
    const startedMs = performance.now();
    const result = resultOf(await this.#get(this.#options.path));
    const { metricsPath } = this.#options;
    if (this.#isClosed) return;
    this.#readiness.onProbed(result, performance.now());
    this.#options.onProbed();
    if (metricsPath !== null) await this.#readLoad(metricsPath, result);
    if (this.#isClosed) return;
    const tookMs = performance.now() - startedMs;
    const delayMs = Math.max(0, this.#options.intervalMs - tookMs);
    this.#timer = setTimeout(() => void this.#round(), delayMs).unref();
  }

  /** A backend that does not answer is not asked a second time. */
  async #readLoad(path: string, probed: ProbeResult): Promise<void> {
    const page = probed.kind === 'status' ? await this.#get(path) : null;
    const isPage = page?.kind === 'page' && page.status === 200;
    const load = isPage ? engineLoadOf(page.text) : null;
    this.#missed = load === null ? this.#missed + 1 : 0;
    if (this.#isClosed) return;
    if (load !== null || this.#missed >= MAX_MISSED_READINGS) this.#load = load;
    this.#options.onProbed();
  }

  #get(path: string): Promise<ProbeAnswer> {
    const { authorization, timeoutMs } = this.#options;
    return new Promise((resolve) => {
      const request = probeRequest({ path, authorization, timeoutMs }, (answer) => {
        this.#abort = null;
        resolve(answer);
      });
      this.#abort = () => request.abort();
      request.send(this.#pool);
    });
  }
}

function resultOf(answer: ProbeAnswer): ProbeResult {
  if (answer.kind === 'page') return { kind: 'status', status: answer.status };
  const { code, message } = answer;
  return code === 'ECONNREFUSED' ? { kind: 'refused' } : { kind: 'silent', message };
}
