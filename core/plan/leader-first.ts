import { RUN_MARK } from './runs';

/** Followers wait for their leader this long at most; by then its prefix is in the cache of the model server. */
const MAX_WAIT_MS = 250;
/** Runs that may go ahead of the first one. With more of them, prefixes leave the cache before their followers come. */
const MAX_RUNS_AHEAD = 4;
/** Lines that a run may begin ahead of the first open line: a leader that is far ahead is forgotten by caches. */
const MAX_LINES_AHEAD = 256;

/** Of a shorter line, no part is worth a wait: some 200 tokens, which a model server computes in a few milliseconds. */
const MIN_LEADER_BYTES = 1_024;

/** One run, or the rest of it: indexes `[next, to)` are not taken. */
interface OpenRun {
  next: number;
  readonly to: number;
  /** Its first line; null before it is taken, or if the run needs no leader. */
  leader: number | null;
  /** Until then its followers wait, in the clock of `nowMs`: Infinity before the leader is sent. */
  waitsUntilMs: number;
  readonly isShared: boolean;
}

/** The lines of a chunk, by index. */
export interface LeaderFirstOptions {
  /** One of {@link RUN_MARK} for each line. The first line begins a run, whatever its mark. */
  readonly marks: Uint8Array;
  /** Answered lines are skipped. */
  isAnswered(index: number): boolean;
  /** Bytes of a line of the input. */
  lengthOf(index: number): number;
}

/**
 * The order in which the lines of a chunk are taken: plan order, but the lines of a run wait while its first
 * line, the leader, is in flight (docs/design/execution.md#leaders). Lines that share a prefix and arrive at
 * once would all compute it. Meanwhile lines of later runs are taken. If there are none, the followers go, so that
 * no permit stays unused. Only when a chunk begins, followers wait in any case.
 */
export class LeaderFirst {
  readonly #options: LeaderFirstOptions;
  /** The first run with open lines, and those that may go ahead of it. */
  readonly #runs: OpenRun[] = [];
  /** First index that belongs to none of `#runs`. */
  #end = 0;
  /** Until then followers wait even if nothing else can go; null before the first line is sent. */
  #startEndsMs: number | null = null;

  constructor(options: LeaderFirstOptions) {
    this.#options = options;
  }

  /** Takes the next line; null if all are taken or answered, or wait until {@link startEndsMs}. */
  take(nowMs: number): number | null {
    const first = this.#first();
    if (first === undefined) return null;
    if (mayGo(first, nowMs)) return this.#takeFrom(first);
    this.#lookAhead(first.next);
    const next = this.#runs.find((run) => mayGo(run, nowMs));
    if (next !== undefined) return this.#takeFrom(next);
    return nowMs < (this.#startEndsMs ?? 0) ? null : this.#takeFrom(first);
  }

  /**
   * Until when followers wait even if nothing else can go: 250 ms after the first line was sent, or until a try ends.
   * Then all permits are free at once, and followers that use them would all compute their prefix.
   */
  get startEndsMs(): number | null {
    return this.#startEndsMs;
  }

  /** Whether all lines are taken or answered. */
  get isEmpty(): boolean {
    return this.#first() === undefined;
  }

  /** A line is sent. If it is a leader, its followers wait from now on. */
  onSent(index: number, nowMs: number): void {
    this.#startEndsMs ??= nowMs + MAX_WAIT_MS;
    for (const run of this.#runs) if (run.leader === index) run.waitsUntilMs = nowMs + MAX_WAIT_MS;
  }

  /** The try of a line has ended, or it was put back. If it is a leader, its followers may go. */
  onEnded(index: number): void {
    this.#startEndsMs = 0;
    for (const run of this.#runs) if (run.leader === index) run.waitsUntilMs = 0;
  }

  #first(): OpenRun | undefined {
    for (;;) {
      const first = this.#runs[0] ?? this.#nextRun();
      if (first === undefined || this.#hasOpenLine(first)) return first;
      this.#runs.shift();
    }
  }

  #lookAhead(from: number): void {
    for (let at = this.#runs.length - 1; at > 0; at--) {
      const run = this.#runs[at];
      if (run !== undefined && !this.#hasOpenLine(run)) this.#runs.splice(at, 1);
    }
    while (this.#runs.length <= MAX_RUNS_AHEAD && this.#end - from <= MAX_LINES_AHEAD) {
      const run = this.#nextRun();
      if (run === undefined) return;
      if (!this.#hasOpenLine(run)) this.#runs.pop();
    }
  }

  /** Opens the run that begins at `#end`. */
  #nextRun(): OpenRun | undefined {
    const { marks } = this.#options;
    const from = this.#end;
    if (from >= marks.length) return undefined;
    let to = from + 1;
    while (to < marks.length && marks[to] === RUN_MARK.none) to++;
    this.#end = to;
    const isShared = marks[from] !== RUN_MARK.single && to - from > 1 && this.#isLong(from);
    const run: OpenRun = { next: from, to, leader: null, waitsUntilMs: 0, isShared };
    this.#runs.push(run);
    return run;
  }

  #isLong(index: number): boolean {
    return this.#options.lengthOf(index) >= MIN_LEADER_BYTES;
  }

  #hasOpenLine(run: OpenRun): boolean {
    while (run.next < run.to && this.#options.isAnswered(run.next)) run.next++;
    return run.next < run.to;
  }

  #takeFrom(run: OpenRun): number {
    const index = run.next++;
    if (run.isShared && run.leader === null) {
      run.leader = index;
      run.waitsUntilMs = Infinity;
    }
    return index;
  }
}

function mayGo(run: OpenRun, nowMs: number): boolean {
  return nowMs >= run.waitsUntilMs;
}
