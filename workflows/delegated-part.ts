import { log, patched } from '@temporalio/workflow';
import type { CollectedJob, DelegatedJob, JobInput } from '../activities/delegate/contract';
import type { StopCause } from '../core/batch/status';
import { summaryText } from '../core/batch/temporal-bounds';
import { OpenRanges } from '../core/chunks/open-ranges';
import type { Range } from '../core/range';
import { failureType, isSystemFailure } from './chunk-outcome';
import { delegatedPart, type DelegatedPlan } from './delegated-input';
import type { DelegatePolicy } from './delegate-policies';
import { collectJobActivity, submitJobActivity, watchJobActivity } from './delegate-policies';
import type { LaneContext } from './lane-context';
import type { ModelProgress } from './model-progress';

/** What the jobs of one model share. */
export interface DelegatedPartOptions {
  readonly plan: DelegatedPlan;
  readonly context: LaneContext;
  readonly progress: ModelProgress;
  /** Called when the job covers only the front of its part, and the rest is open again. */
  onCut(): Promise<unknown>;
}

/**
 * Takes one job from its row to its answers in the journal. What it leaves unanswered is open again
 * afterwards, whatever happened (docs/design/delegation.md#lanes).
 */
export class DelegatedPartRun {
  readonly #o: DelegatedPartOptions;
  readonly #job: DelegatedJob;
  /** The positions that it has taken. Those of a later generation have answered ones between them, counted before. */
  readonly #taken: OpenRanges;
  /** The end of what the job covers. */
  #to: number;

  /** Takes the open positions of `job`. */
  constructor(job: DelegatedJob, options: DelegatedPartOptions) {
    const { open } = options.progress;
    const { from, to } = job;
    const taken = open.within(job);
    const isWhole = taken.length === 1 && taken[0]?.from === from && taken[0].to === to;
    this.#job = job;
    this.#to = to;
    this.#o = options;
    this.#taken = new OpenRanges(isWhole || !patched('count-once') ? [{ from, to }] : taken);
    open.remove(job);
  }

  get jobIds(): readonly string[] {
    return this.#job.jobs?.map(({ jobId }) => jobId) ?? [this.#job.jobId];
  }

  /** Submits, watches and collects. Never rejects; returns the lines without an answer, null if unknown. */
  run(): Promise<number | null> {
    return this.#settle(async () => {
      const { kind, to, stopCause } = await submitJobActivity(this.#policy('submit'))(this.#input);
      // Without a cause the batch has ended, by another hand: this workflow has nothing left to do.
      this.#observe(kind === 'stopped' ? (stopCause ?? 'failed') : stopCause);
      const isCut = this.#cutTo(to);
      const rest = isCut ? this.#o.onCut() : null;
      if (kind === 'submitted') await this.#watch(false);
      const collected = await this.#collect();
      await rest;
      return collected;
    });
  }

  /** After a stop: cancels the job at the provider, waits for its end, and collects, as `run` does. */
  harvest(): Promise<number | null> {
    return this.#settle(async () => {
      await this.#watch(true);
      return this.#collect();
    });
  }

  get #input(): JobInput {
    const { context, plan } = this.#o;
    return { ...delegatedPart(context, plan), job: { ...this.#job, to: this.#to } };
  }

  /** Gives the end of the part back if staging has cut it. */
  #cutTo(to: number): boolean {
    if (to >= this.#to) return false;
    this.#giveBack({ from: to, to: this.#to });
    this.#to = to;
    return true;
  }

  async #watch(stopping: boolean): Promise<void> {
    const watch = watchJobActivity(this.#policy(stopping ? 'end' : 'watch'));
    await watch({ ...this.#input, ...(stopping ? { stopping } : {}) });
  }

  async #collect(): Promise<CollectedJob> {
    const taken = this.#taken.within({ from: this.#job.from, to: this.#to });
    const input = taken.length === 1 ? this.#input : { ...this.#input, taken };
    const collected = await collectJobActivity(this.#policy('collect'))(input);
    this.#observe(collected.stopCause);
    return collected;
  }

  async #settle(work: () => Promise<CollectedJob>): Promise<number | null> {
    const { progress } = this.#o;
    let next = this.#job.from;
    try {
      const collected = await work();
      next = collected.next;
      progress.add(collected);
      return collected.unanswered;
    } catch (error) {
      this.#fail(error);
      return null;
    } finally {
      this.#giveBack({ from: next, to: this.#to });
    }
  }

  #giveBack(range: Range): void {
    for (const one of this.#taken.within(range)) this.#o.progress.open.giveBack(one);
  }

  #fail(error: unknown): void {
    const { context, plan, progress } = this.#o;
    const type = failureType(error);
    const { jobId } = this.#job;
    // A worker may still be writing answers.
    if (context.stop.requested) progress.isUnaccounted = true;
    else if (isSystemFailure(type)) {
      log.error('batch cannot go on', { type, model: plan.model });
      context.stop.request('failed');
    } else log.warn('job interrupted', { model: plan.model, jobId, error: String(error) });
  }

  #observe(stopCause: StopCause | null): void {
    if (stopCause !== null) this.#o.context.stop.request(stopCause);
  }

  #policy(what: string): DelegatePolicy {
    const { plan, context } = this.#o;
    const { provider, queue } = plan.delegate;
    const { from } = this.#job;
    const range = `[${from}, ${this.#to})`;
    return {
      ...{ settings: context.opened.settings, queue },
      summary: summaryText(`${what} ${plan.model} ${range} → ${provider}`),
    };
  }
}
