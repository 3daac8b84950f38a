/**
 * A model of everything around the attempts to create one job: a provider, PostgreSQL, processes, and time.
 * What happens is drawn from a list of numbers. 0 is always the harmless choice, and after the end of the
 * list nothing goes wrong any more, so that shorter lists and smaller numbers are simpler stories.
 */
import {
  CreateAttempt,
  type CreateEnd,
  type CreateEvent,
} from '../../../core/delegation/create-attempt';
import type { Clocks } from '../../../core/delegation/create-lease';
import type { JobStep } from '../../../core/delegation/job-steps';
import { CreateRows, LEASE_MS, SETTLE_MS } from './create-rows';

const HEARTBEAT_MS = 10_000;
const RECORD_AGAIN_MS = 1_000;
const PROOF_PAUSE_MS = 60_000;
const LONGEST_JOB_MS = 1_800_000;
/** Far more than any story needs. */
const MAX_EVENTS = 5_000;
/** From prompt to longer than lease and settle together. */
const DELAYS_MS = [
  5, 900, 4_000, 28_000, 61_000, 84_000, 88_000, 95_000, 125_000, 155_000, 400_000,
];

interface Job {
  readonly id: string;
  readonly createdAtMs: number;
  readonly listedAtMs: number;
  readonly endsAtMs: number;
}

/** What a story may contain. */
export interface Story {
  readonly choices: readonly number[];
  /** Workflows that create the job side by side, as after a reset. */
  readonly workflows: number;
  /** When the batch stops; null for never. */
  readonly stopAtMs: number | null;
  /** PostgreSQL is restored to what it was at `toMs`; null if that does not happen. */
  readonly restore: { readonly atMs: number; readonly toMs: number } | null;
  /** The provider may refuse the job for good. */
  readonly mayRefuse: boolean;
  /** How a look-up recognises the job: by our marker, or by what its results say when it has ended. */
  readonly recognisedBy: 'marker' | 'results';
  /** Jobs of others in the account, with as many lines as ours. */
  readonly foreign: readonly { readonly createdAtMs: number; readonly lastsMs: number }[];
}

/** The end of a story. */
export interface Ending {
  /** Ids of all jobs that the provider has accepted. */
  readonly jobs: readonly string[];
  readonly row: { readonly step: JobStep; readonly externalId: string | null };
  /** When the last create call left; null if none did. */
  readonly lastSentMs: number | null;
  /** How the attempts of the workflows ended, in order. */
  readonly ends: readonly CreateEnd[];
  /** What happened, one line each, to read when a test fails. */
  readonly log: readonly string[];
}

/** Tells a story from beginning to end. */
export async function tell(story: Story): Promise<Ending> {
  return new World(story).run();
}

class World {
  readonly #story: Story;
  readonly #queue: { atMs: number; seq: number; act: () => void | Promise<void> }[] = [];
  readonly #jobs: Job[] = [];
  readonly #foreign: readonly Job[];
  readonly #rows: CreateRows;
  readonly #ends: CreateEnd[] = [];
  readonly #log: string[] = [];
  #nowMs = 0;
  #seq = 0;
  #choice = 0;
  #attempts = 0;
  #lastSentMs: number | null = null;

  constructor(story: Story) {
    this.#story = story;
    this.#rows = new CreateRows(story, {
      nowMs: () => this.#nowMs,
      note: (text) => this.#note(text),
    });
    this.#foreign = story.foreign.map(({ createdAtMs, lastsMs }, i) => ({
      ...{ id: `foreign-${i}`, createdAtMs, listedAtMs: createdAtMs },
      endsAtMs: createdAtMs + lastsMs,
    }));
  }

  async run(): Promise<Ending> {
    const { workflows, restore } = this.#story;
    for (let i = 0; i < workflows; i++) this.#after(this.#delay(), () => this.#startAttempt());
    if (restore !== null) this.#after(restore.atMs, () => this.#restore(restore.toMs));
    for (let events = 0; this.#queue.length > 0; events++) {
      if (events > MAX_EVENTS) throw new Error(`no end:\n${this.#log.slice(-50).join('\n')}`);
      this.#queue.sort((a, b) => a.atMs - b.atMs || a.seq - b.seq);
      const event = this.#queue.shift();
      if (event === undefined) break;
      this.#nowMs = event.atMs;
      await event.act();
    }
    const { step, externalId } = this.#rows.row;
    return {
      jobs: this.#jobs.map(({ id }) => id),
      row: { step, externalId },
      lastSentMs: this.#lastSentMs,
      ends: this.#ends,
      log: this.#log,
    };
  }

  /* Chance. */

  #choose(n: number): number {
    const value = this.#story.choices[this.#choice++] ?? 0;
    return value % n;
  }

  /** True once in `n` times, never when the story has no more choices. */
  #happens(n: number): boolean {
    return this.#choose(n) === n - 1;
  }

  /** Mostly prompt, sometimes longer than the lease. */
  #delay(): number {
    if (!this.#happens(3)) return 5 + this.#choose(200);
    return (DELAYS_MS[this.#choose(DELAYS_MS.length)] ?? 0) + this.#choose(2_500);
  }

  /** A time up to `ms`, often one of the two ends. */
  #upTo(ms: number): number {
    return [0, ms, this.#choose(ms + 1)][this.#choose(3)] ?? 0;
  }

  #after(ms: number, act: () => void | Promise<void>): void {
    this.#queue.push({ atMs: this.#nowMs + ms, seq: this.#seq++, act });
  }

  #note(text: string): void {
    this.#log.push(`${this.#nowMs} ${text}`);
  }

  #restore(toMs: number): void {
    this.#rows.restore(toMs);
    // A workflow that was reset does not know how its earlier attempts have ended.
    this.#after(this.#delay(), () => this.#startAttempt());
  }

  get #isProvenByResults(): boolean {
    return this.#story.recognisedBy === 'results';
  }

  /* The provider. */

  #lookUp({ searchFromMs }: Process): CreateEvent {
    const failed = this.#happens(6);
    const listed = [...this.#jobs, ...(this.#isProvenByResults ? this.#foreign : [])].filter(
      ({ listedAtMs, createdAtMs }) => listedAtMs <= this.#nowMs && createdAtMs >= searchFromMs,
    );
    const [job] = listed;
    const ids = listed.map(({ id }) => id);
    this.#note(failed ? 'a look-up fails' : `a look-up finds ${ids.join() || 'nothing'}`);
    if (failed) {
      const outcome = (['transient', 'capacity', 'auth'] as const)[this.#choose(3)] ?? 'transient';
      return { of: 'look_up', found: { kind: 'failed', outcome, retryAfterMs: null } };
    }
    if (job === undefined) return { of: 'look_up', found: { kind: 'none' } };
    if (this.#isProvenByResults)
      return { of: 'look_up', found: { kind: 'candidates', externalIds: ids } };
    return { of: 'look_up', found: { kind: 'job', externalId: job.id } };
  }

  /** A request that may leave now and has `leftMs` until its connection ends. Calls back with its event. */
  #create(token: number, leftMs: number, answer: (event: CreateEvent) => void): void {
    const fail = (
      outcome: 'not_sent' | 'capacity' | 'auth' | 'ambiguous' | 'refused',
      ms: number,
    ) => this.#after(ms, () => answer({ of: 'create', outcome, retryAfterMs: null }));
    if (leftMs <= 0) return fail('not_sent', 0);
    this.#lastSentMs = this.#nowMs;
    const outcomes = ['accept', 'lose', 'late', 'ignore', 'not_sent', 'capacity', 'auth', 'refuse'];
    const what = outcomes[this.#choose(this.#story.mayRefuse ? 8 : 7)];
    this.#note(`attempt ${token} creates, ${leftMs} ms left: ${what}`);
    const inTimeMs = Math.min(leftMs, this.#delay());
    if (what === 'accept') {
      this.#after(inTimeMs, () => {
        const externalId = this.#accept(token);
        this.#after(0, () => answer({ of: 'create', outcome: 'accepted', externalId }));
      });
    } else if (what === 'lose' || what === 'late') {
      // The answer is lost, or it is a 500 although the provider goes on.
      const lateMs = what === 'late' ? leftMs + this.#upTo(SETTLE_MS) : this.#upTo(leftMs);
      this.#after(lateMs, () => void this.#accept(token));
      fail('ambiguous', inTimeMs);
    } else if (what === 'ignore') {
      fail('ambiguous', inTimeMs);
    } else {
      fail(what === 'refuse' ? 'refused' : (what as 'not_sent' | 'capacity' | 'auth'), inTimeMs);
    }
  }

  #accept(token: number): string {
    const id = `job-of-attempt-${token}`;
    this.#jobs.push({
      ...{ id, createdAtMs: this.#nowMs, listedAtMs: this.#nowMs + this.#upTo(SETTLE_MS) },
      endsAtMs: this.#nowMs + this.#choose(LONGEST_JOB_MS),
    });
    this.#note(`the provider accepts ${id}`);
    return id;
  }

  /* Processes. */

  #startAttempt(): void {
    const { candidates } = this.#rows.row;
    if (candidates !== null && candidates.length > 0) this.#prove(candidates, { isZombie: false });
    else this.#startCreate();
  }

  /** Looks at candidates one after the other. What a look shows may be written long after it. */
  #prove([id, ...rest]: readonly string[], process: { isZombie: boolean }): void {
    if (this.#happens(12)) return this.#replace(process);
    if (id === undefined) {
      if (process.isZombie) return;
      const { candidates } = this.#rows.row;
      const isOpen = candidates !== null && candidates.length > 0;
      return this.#after(isOpen ? PROOF_PAUSE_MS : 0, () => this.#startAttempt());
    }
    const job = [...this.#jobs, ...this.#foreign].find((one) => one.id === id);
    const hasEnded = job !== undefined && job.endsAtMs <= this.#nowMs;
    const pauseMs = this.#delay();
    if (pauseMs > HEARTBEAT_MS) this.#replace(process);
    this.#after(pauseMs, () => {
      if (hasEnded && this.#jobs.includes(job)) this.#rows.record(id);
      else if (hasEnded) this.#rows.refute(id);
      this.#prove(rest, process);
    });
  }

  #startCreate(): void {
    const token = ++this.#attempts;
    const bootMs = this.#choose(2) * 1e6;
    const clocks = { suspendedMs: 0, setBackMs: 0 };
    const now = (): Clocks => ({
      monotonicMs: this.#nowMs + bootMs - clocks.suspendedMs,
      wallMs: this.#nowMs - clocks.setBackMs,
    });
    const attempt = new CreateAttempt({ takenAt: now(), lengthMs: LEASE_MS }, SETTLE_MS);
    this.#note(`attempt ${token} starts`);
    const isClockMonotonic = this.#choose(2) === 0;
    this.#act({ token, attempt, now, clocks, isClockMonotonic, isZombie: false, searchFromMs: 0 });
  }

  /** Does the action of an attempt, unless its process dies, and perhaps after a standstill. */
  #act(process: Process): void {
    if (this.#happens(12)) {
      this.#note(`attempt ${process.token} dies before ${process.attempt.action.do}`);
      this.#replace(process);
      return;
    }
    const pauseMs = this.#delay();
    if (pauseMs > HEARTBEAT_MS) {
      this.#replace(process);
      // Only one of the clocks of a process is wrong.
      if (process.isClockMonotonic) process.clocks.setBackMs += 2 * pauseMs * this.#choose(2);
      else process.clocks.suspendedMs += pauseMs;
    }
    this.#after(pauseMs, () => this.#perform(process));
  }

  /** Temporal starts another attempt; the old one, if it lives, is a zombie. */
  #replace(process: Pick<Process, 'isZombie'>): void {
    if (process.isZombie) return;
    process.isZombie = true;
    this.#after(HEARTBEAT_MS, () => this.#startAttempt());
  }

  async #perform(process: Process): Promise<void> {
    const { attempt, token, now } = process;
    const { action } = attempt;
    const answer = (event: CreateEvent, delayMs = this.#delay()): void =>
      this.#after(delayMs, () => {
        attempt.next(event, now());
        this.#act(process);
      });
    switch (action.do) {
      case 'end':
        return this.#end(process, action.end);
      case 'create':
        return this.#create(token, attempt.leftMs(now()), (event) => answer(event));
      case 'look_up':
        return answer(this.#lookUp(process));
      case 'record':
        if (this.#happens(4))
          return answer({ of: 'record', result: { kind: 'unavailable' } }, RECORD_AGAIN_MS);
        return answer(this.#rows.record(action.externalId));
      default:
        return this.#ask(process, answer);
    }
  }

  /** A statement that may fail before or after PostgreSQL has carried it out. */
  async #ask(process: Process, answer: (event: CreateEvent) => void): Promise<void> {
    const { attempt, token } = process;
    const { action } = attempt;
    const fate = (['works', 'fails', 'answer_lost'] as const)[
      this.#happens(8) ? this.#choose(3) : 0
    ];
    let event: CreateEvent = { of: 'give_back' };
    if (fate !== 'fails') {
      if (action.do === 'take_lease') event = await this.#rows.takeLease(process);
      else if (action.do === 'give_back') event = this.#rows.giveBack(token, action);
      else if (action.do === 'note_candidates')
        event = this.#rows.noteCandidates(token, action.externalIds);
      else event = this.#rows.refuse(token);
    }
    if (fate === 'works') return answer(event);
    this.#note(`the statement of attempt ${token} ${fate}`);
    // The activity fails and is retried.
    this.#end(process, { kind: 'retry', reason: 'no_time', afterMs: 1_000 });
  }

  #end(process: Process, end: CreateEnd): void {
    this.#note(`attempt ${process.token} ends: ${JSON.stringify(end)}`);
    if (process.isZombie) return;
    this.#ends.push(end);
    if (end.kind === 'retry') this.#after(end.afterMs, () => this.#startAttempt());
  }
}

interface Process {
  readonly token: number;
  readonly attempt: CreateAttempt;
  readonly now: () => Clocks;
  /** What the monotonic clock has missed, and how far the wall clock was set back. */
  readonly clocks: { suspendedMs: number; setBackMs: number };
  /** False: the monotonic clock stops in each standstill, as that of a suspended machine may. */
  readonly isClockMonotonic: boolean;
  /** Its workflow has given it up, and another attempt runs. */
  isZombie: boolean;
  /** A look-up goes back to this time. */
  searchFromMs: number;
}
