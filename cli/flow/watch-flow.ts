import { isNightshiftError } from '../../core/errors';
import type { FlowPage } from '../../platform/flow-page';
import { EXIT, type ExitCode } from '../batches/exit-codes';
import { humanDuration, shortened } from '../batches/human-format';
import type { Interrupts } from '../batches/interrupts';
import { paintFor } from '../batches/paint';
import type { FlowIo } from './flow-io';
import { flowLines, SORTS } from './flow-text';
import { openFullScreen, type FullScreen } from './full-screen';
import { readFlow } from './read-flow';

/** Pages older than this are kept for rates. */
const RATE_MS = 5_000;

interface Sample {
  readonly page: FlowPage;
  readonly atMs: number;
}

/**
 * Shows the flow of a gateway on the whole terminal until `q`, Ctrl-C or a signal. A gateway that goes away is asked
 * again; meanwhile its last state stays on the screen.
 *
 * @throws unavailable, invalid_request if the first reading fails
 */
export async function watchFlow(
  url: string,
  io: FlowIo,
  interrupts: Interrupts,
): Promise<ExitCode> {
  const first = { page: await readFlow(url, interrupts.signal), atMs: performance.now() };
  const screen = openFullScreen(io.stdout);
  const watch = new FlowWatch({ url, io, interrupts, screen, first });
  const onResize = (): void => watch.draw();
  const endKeys = io.readKeys?.((key) => watch.onKey(key));
  io.stdout.on('resize', onResize);
  try {
    await watch.run();
  } finally {
    io.stdout.off('resize', onResize);
    endKeys?.();
    screen.close();
  }
  return interrupts.pending === null && !watch.isInterrupted ? EXIT.completed : EXIT.interrupted;
}

interface WatchParts {
  readonly url: string;
  readonly io: FlowIo;
  readonly interrupts: Interrupts;
  readonly screen: FullScreen;
  readonly first: Sample;
}

const CTRL_C = '\u0003';

class FlowWatch {
  isInterrupted = false;
  readonly #parts: WatchParts;
  readonly #quit = new AbortController();
  /** The latest ones, the oldest first; never empty. */
  #samples: readonly [Sample, ...Sample[]];
  #sort = 0;
  /** Index of the only pool to show; null for all. */
  #pool: number | null = null;
  /** Why the gateway cannot be read; null if it can. */
  #fault: string | null = null;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#samples = [parts.first];
  }

  async run(): Promise<void> {
    const { io, interrupts } = this.#parts;
    const quit = new Promise<void>((resolve) => {
      this.#quit.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    for (;;) {
      this.draw();
      await Promise.race([interrupts.sleep(io.refreshMs), quit]);
      if (this.#isOver) return;
      await this.#read();
      if (this.#isOver) return;
    }
  }

  onKey(key: string): void {
    if (key === CTRL_C) this.isInterrupted = true;
    if (key === 'q' || key === CTRL_C) this.#quit.abort();
    else if (key === 's') this.#sort = (this.#sort + 1) % SORTS.length;
    else if (key === 'p') this.#nextPool();
    else return;
    if (!this.#isOver) this.draw();
  }

  draw(): void {
    const { io, screen } = this.#parts;
    const latest = this.#latest;
    const [oldest] = this.#samples;
    const style = { width: screen.columns, paint: paintFor(io.stdout, io.env) };
    const isAlone = oldest === latest;
    const before = isAlone ? null : { page: oldest.page, ageMs: latest.atMs - oldest.atMs };
    const sort = SORTS[this.#sort] ?? SORTS[0];
    const lines = flowLines({ ...style, page: this.#shown(latest.page), before, sort });
    screen.draw([...this.#head(style.width), '', ...lines]);
  }

  get #isOver(): boolean {
    return this.#quit.signal.aborted || this.#parts.interrupts.pending !== null;
  }

  get #latest(): Sample {
    return this.#samples.at(-1) ?? this.#samples[0];
  }

  #head(width: number): string[] {
    const { io, url } = this.#parts;
    const paint = paintFor(io.stdout, io.env);
    const sort = SORTS[this.#sort] ?? SORTS[0];
    const isMany = this.#latest.page.pools.length > 1;
    const keys = `q quit, s sort (${sort})${isMany ? ', p pool' : ''}`;
    const head = shortened(`nightshift flow ${url}  ${keys}`, width);
    if (this.#fault === null) return [paint('dim', head)];
    const ageMs = performance.now() - this.#latest.atMs;
    const fault = `${this.#fault} Trying again; this is the state ${humanDuration(ageMs)} ago.`;
    return [paint('dim', head), paint('red', shortened(fault, width))];
  }

  #shown(page: FlowPage): FlowPage {
    if (this.#pool === null) return page;
    return { ...page, pools: page.pools.slice(this.#pool, this.#pool + 1) };
  }

  #nextPool(): void {
    const next = this.#pool === null ? 0 : this.#pool + 1;
    this.#pool = next < this.#latest.page.pools.length ? next : null;
  }

  async #read(): Promise<void> {
    const { url, interrupts } = this.#parts;
    const signal = AbortSignal.any([interrupts.signal, this.#quit.signal]);
    try {
      const page = await readFlow(url, signal);
      this.#fault = null;
      this.#add({ page, atMs: performance.now() });
    } catch (error) {
      if (!isNightshiftError(error)) throw error;
      this.#fault = error.message.split(/(?<=\.) /, 1)[0] ?? error.message;
    }
  }

  #add(sample: Sample): void {
    const [first, ...rest] = [...this.#samples, sample];
    const isOld = sample.atMs - first.atMs > RATE_MS;
    const [second, ...others] = rest;
    this.#samples = isOld && second !== undefined ? [second, ...others] : [first, ...rest];
  }
}
