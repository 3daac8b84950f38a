import { TtfbWindow, type TtfbReport } from './ttfb-window';

/** What the cap depends on, in requests of the pool. */
export interface CapBounds {
  /** The learnt limits of all ready backends together. */
  readonly limit: number;
  /** What `sheddable` may use without harm: its share of the limit. */
  readonly ceiling: number;
  /** What `sheddable` may always use. */
  readonly floor: number;
  /** What `sheddable` has in flight. */
  readonly inFlight: number;
}

/** Upper bounds of the classes of prompts, in tokens. Longer prompts are in a class of their own. */
const CLASSES = [512, 2_048, 8_192, 32_768, Infinity];
/** Streams are that much slower than their base: batches do harm. */
const HARM = 2;
/** Streams are at most that much slower than their base: batches may have more. */
const NO_HARM = 1.65;
/** Streams are slower than the steps of a busy engine explain: they wait for a place in it. */
const QUEUE = 2.5;
const SHRINK = 0.7;
/** Growth per second, as a share of the limit. */
const GROWTH = 0.1;
/** The cap is cut only if at least this share of it is in flight: else it is not what lets batches do harm. */
const USED = 0.5;
/** If streams are slow with less than this share of the former cap in flight, batches are not the reason. */
const INNOCENT = 0.25;
/** After this long without a stream of a higher band, there is nothing to protect. */
const SILENT_AFTER_MS = 10_000;
/** The cap changes once per interval, so that a change shows its effect before the next one. */
const INTERVAL_MS = 1_000;

/**
 * Caps what `sheddable` requests have in flight, so that interactive users do not notice them
 * (docs/design/flow-control.md#do-no-harm).
 *
 * A learnt limit only protects the throughput of a backend. Long before throughput suffers, users wait longer
 * for the first byte. So the guard compares the time to first byte (TTFB) of streams in higher bands with the
 * best minute of the last ten. Prompts of different sizes have different times, so each class of sizes is
 * compared with itself, and the slowest class decides.
 */
export class HarmGuard {
  readonly #windows = CLASSES.map(() => new TtfbWindow());
  #lastStreamMs = -Infinity;
  #changedMs = -Infinity;
  #cap = Infinity;
  /** The cap before it was cut; null if it was not, or has grown since. */
  #before: number | null = null;
  #isEngineQueueing = false;

  /** Whether streams showed, when they were last compared, that batches make them wait for a place in an engine. */
  get isEngineQueueing(): boolean {
    return this.#isEngineQueueing;
  }

  /** A stream of a higher band got its first byte. */
  onFirstByte(stream: {
    readonly promptTokens: number;
    readonly ttfbMs: number;
    readonly nowMs: number;
  }): void {
    const { promptTokens, ttfbMs, nowMs } = stream;
    this.#windows[CLASSES.findIndex((most) => promptTokens <= most)]?.add(ttfbMs, nowMs);
    this.#lastStreamMs = nowMs;
  }

  /** How many `sheddable` requests may be in flight now. It changes at most once a second. */
  cap(bounds: CapBounds, nowMs: number): number {
    const { ceiling, floor } = bounds;
    const isSilent = nowMs - this.#lastStreamMs >= SILENT_AFTER_MS;
    this.#cap = Math.min(this.#cap, ceiling);
    if (isSilent) this.#isEngineQueueing = false;
    if (isSilent) this.#set(ceiling, null, nowMs);
    else if (nowMs - this.#changedMs >= INTERVAL_MS) this.#adjust(bounds, nowMs);
    this.#cap = Math.max(floor, Math.min(this.#cap, ceiling));
    return this.#cap;
  }

  /** How much slower than their base the streams of the class that suffers most are; null if that is not known. */
  slowdown(nowMs: number): number | null {
    const known = this.#windows
      .map((window) => window.slowdown(nowMs))
      .filter((one) => one !== null);
    return known.length === 0 ? null : Math.max(...known);
  }

  /** What it compares, by class of prompts; `maxPromptTokens` is null for the longest ones. */
  report(nowMs: number): readonly (TtfbReport & { readonly maxPromptTokens: number | null })[] {
    return this.#windows.map((window, i) => {
      const most = CLASSES[i] ?? Infinity;
      return {
        maxPromptTokens: Number.isFinite(most) ? most : null,
        ...window.report(nowMs),
      };
    });
  }

  #adjust({ limit, inFlight, ceiling }: CapBounds, nowMs: number): void {
    const slowest = this.slowdown(nowMs) ?? 0;
    this.#isEngineQueueing = slowest > QUEUE && inFlight >= USED * this.#cap;
    if (slowest > HARM) this.#onHarm(inFlight, nowMs);
    else if (slowest > 0 && slowest < NO_HARM && this.#cap < ceiling) {
      this.#set(this.#cap + GROWTH * limit, null, nowMs);
    }
  }

  #onHarm(inFlight: number, nowMs: number): void {
    const cap = this.#cap;
    const before = this.#before;
    if (inFlight >= USED * cap) this.#set(cap * SHRINK, before ?? cap, nowMs);
    else if (before !== null && inFlight < INNOCENT * before) this.#set(before, null, nowMs);
  }

  #set(cap: number, before: number | null, nowMs: number): void {
    if (cap !== this.#cap) {
      this.#changedMs = nowMs;
      for (const window of this.#windows) window.restart(nowMs);
    }
    this.#cap = cap;
    this.#before = before;
  }
}
