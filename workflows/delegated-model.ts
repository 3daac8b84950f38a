import { CancellationScope, condition, log, patched, sleep } from '@temporalio/workflow';
import type { DelegatedJob } from '../activities/delegate/contract';
import { summaryText } from '../core/batch/temporal-bounds';
import { AFTER_HARVEST_MS } from '../core/delegation/intervals';
import { groupJobs } from '../core/delegation/job-groups';
import type { ChunkInFlight, OverdueQueue } from './chunk-in-flight';
import type { ResumedModel } from './contract';
import { openPartsActivity } from './delegate-policies';
import { DelegatedPartRun } from './delegated-part';
import { delegatedPart, type DelegatedPlan } from './delegated-input';
import type { LaneContext } from './lane-context';
import { isHalted } from './lane-context';
import { ModelLanes } from './model-lanes';
import type { ModelProgress } from './model-progress';
import type { ModelRun } from './model-run';
import { settleLeftovers } from './settle-leftovers';

/**
 * Runs one model through a provider's batch API: jobs in generations, each over what the last one left
 * unanswered. What no job answers runs at the model's gateway, or ends with an error code. Rows hold the
 * state of all jobs, so this class keeps none that another run would need
 * (docs/design/delegation.md#lanes).
 */
export class DelegatedModel implements ModelRun {
  readonly plan: DelegatedPlan;
  readonly #context: LaneContext;
  /** Runs leftovers at the gateway, and holds the model's progress. */
  readonly #lanes: ModelLanes;
  readonly #jobs = new Set<DelegatedPartRun>();
  /** Lines without an answer, once all jobs of a generation have said how many they left; null if unknown. */
  #unanswered: number | null = null;
  /** Staging has cut a part, so that more jobs run than the generation began with. */
  #isCut = false;

  constructor(plan: DelegatedPlan, context: LaneContext) {
    this.plan = plan;
    this.#context = context;
    this.#lanes = new ModelLanes(plan, context);
  }

  get progress(): ModelProgress {
    return this.#lanes.progress;
  }

  get isUndecided(): boolean {
    return false;
  }

  get queue(): string {
    return this.#jobs.size > 0 ? this.plan.delegate.queue : this.#lanes.queue;
  }

  get unroutedSinceMs(): number | null {
    return this.#lanes.unroutedSinceMs;
  }

  get overdue(): OverdueQueue | null {
    return this.#lanes.overdue;
  }

  get running(): number {
    return this.#jobs.size + this.#lanes.running;
  }

  get inFlight(): ReadonlySet<ChunkInFlight> {
    return this.#lanes.inFlight;
  }

  async run(): Promise<void> {
    await this.#runJobs();
    if (isHalted(this.#context) || this.progress.open.isEmpty) return;
    if (this.plan.delegate.fallback) await this.#lanes.run();
    else await settleLeftovers(this, this.#context);
  }

  /** Cancels jobs that still run at the provider, waits for their end, and collects their answers. */
  async harvest(): Promise<void> {
    await this.#atMost(this.plan.delegate.harvestGraceMs + AFTER_HARVEST_MS, async () => {
      const jobs = await this.#openJobs(true);
      await Promise.all(jobs.map((job) => this.#runJob(job, (part) => part.harvest())));
    });
  }

  toResume(): ResumedModel {
    return { ...this.#lanes.toResume(), delegate: this.plan.delegate };
  }

  /** Runs generations until the provider can do no more, at most until its time is over. */
  async #runJobs(): Promise<void> {
    const { giveUpAtMs, harvestGraceMs } = this.plan.delegate;
    const leftMs = giveUpAtMs + harvestGraceMs - Date.now();
    const jobs = new CancellationScope();
    const handOver = new CancellationScope();
    void handOver
      .run(() => condition(() => this.#context.handingOver()))
      .then(() => jobs.cancel())
      .catch(() => undefined);
    await jobs.run(() =>
      this.#atMost(Math.max(leftMs, 0) + AFTER_HARVEST_MS, async () => {
        while (!isHalted(this.#context) && (await this.#runOpen()));
      }),
    );
    handOver.cancel();
  }

  /** Runs jobs over what is open now. False if the provider does no more for it. */
  async #runOpen(): Promise<boolean> {
    if (this.progress.open.isEmpty) return false;
    const jobs = await this.#openJobs(false);
    const left = await Promise.all(jobs.map((job) => this.#runJob(job, (part) => part.run())));
    this.#unanswered = this.#isCut ? null : sumOf(left);
    return jobs.length > 0;
  }

  /** Runs `work` for at most `ms`, which also ends it if no worker serves the provider. Never rejects. */
  async #atMost(ms: number, work: () => Promise<void>): Promise<void> {
    const working = new CancellationScope();
    const timer = new CancellationScope();
    void timer
      .run(() => sleep(ms, { summary: `longest wait for ${this.plan.delegate.provider}` }))
      .then(() => working.cancel())
      .catch(() => undefined);
    await working
      .run(work)
      .catch((error: unknown) => log.info('delegation interrupted', { error: String(error) }));
    timer.cancel();
  }

  /** The jobs to run now. Their positions are taken. */
  async #openJobs(stopping: boolean): Promise<readonly DelegatedJob[]> {
    const openRanges = this.progress.open;
    const openParts = openPartsActivity(summaryText(`jobs of ${this.plan.model}`));
    const part = delegatedPart(this.#context, this.plan);
    const ranges = openRanges.takeAll();
    try {
      const open = ranges.map(({ from, to }) => ({ from, to }));
      const input = { ...part, open, unanswered: this.#unanswered };
      const opened = await openParts(stopping ? { ...input, stopping } : input);
      return partsOf(this.#notRunning(opened.jobs), opened.jobsPerPart ?? 1);
    } finally {
      for (const range of ranges) openRanges.giveBack(range);
    }
  }

  /**
   * Without the jobs that this run has in flight: the rest of a cut part is opened beside them. A job that ran
   * twice here would give its positions back twice.
   */
  #notRunning(jobs: readonly DelegatedJob[]): readonly DelegatedJob[] {
    const running = new Set([...this.#jobs].flatMap(({ jobIds }) => jobIds));
    const rest = jobs.filter(({ jobId }) => !running.has(jobId));
    return rest.length < jobs.length && patched('each-job-once') ? rest : jobs;
  }

  /** The lines that the job left without an answer; null if unknown. */
  async #runJob(
    job: DelegatedJob,
    how: (part: DelegatedPartRun) => Promise<number | null>,
  ): Promise<number | null> {
    const part = new DelegatedPartRun(job, {
      plan: this.plan,
      context: this.#context,
      progress: this.progress,
      onCut: () => {
        this.#isCut = true;
        return this.#runOpen();
      },
    });
    this.#jobs.add(part);
    this.#context.onChange();
    const left = await how(part);
    this.#jobs.delete(part);
    this.#context.onChange();
    return left;
  }
}

/** Jobs that run as one part are one job to the workflow. */
function partsOf(jobs: readonly DelegatedJob[], jobsPerPart: number): readonly DelegatedJob[] {
  if (jobsPerPart === 1) return jobs;
  return groupJobs(jobs, jobsPerPart).flatMap((group) => {
    const [first, last] = [group[0], group.at(-1)];
    if (first === undefined || last === undefined) return [];
    return group.length === 1 ? group : [{ ...first, to: last.to, jobs: group }];
  });
}

/** Null if a number is unknown. */
function sumOf(numbers: readonly (number | null)[]): number | null {
  return numbers.reduce((sum, one) => (sum === null || one === null ? null : sum + one), 0);
}
