import { CancellationScope, condition, log, patched, sleep } from '@temporalio/workflow';
import type { DelegatedJob, OpenPartsInput } from '../activities/delegate/contract';
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
  /** An `openParts` is on its way. */
  #isOpening = false;
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
      const jobs = await this.#openJobs({ stopping: true });
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
    const isOver = await jobs.run(() =>
      this.#atMost(Math.max(leftMs, 0) + AFTER_HARVEST_MS, async () => {
        while (!isHalted(this.#context) && (await this.#runOpen()));
      }),
    );
    handOver.cancel();
    if (isOver) await this.#giveUp();
  }

  /** Settles the rows of jobs that no worker has looked after: the provider's queue is not served. */
  async #giveUp(): Promise<void> {
    if (isHalted(this.#context) || !patched('give-up-unwatched-jobs')) return;
    await this.#atMost(AFTER_HARVEST_MS, async () => {
      await this.#openJobs({ isOver: true });
    });
  }

  /** Runs jobs over what is open now. False if the provider does no more for it. */
  async #runOpen(): Promise<boolean> {
    if (this.progress.open.isEmpty) return false;
    const jobs = await this.#openJobs({});
    const left = await Promise.all(jobs.map((job) => this.#runJob(job, (part) => part.run())));
    this.#unanswered = this.#isCut ? null : sumOf(left);
    return jobs.length > 0;
  }

  /**
   * Runs `work` for at most `ms`, which also ends it if no worker serves the provider. Never rejects. True if the time was
   * over before it ended.
   */
  async #atMost(ms: number, work: () => Promise<void>): Promise<boolean> {
    let isOver = false;
    const working = new CancellationScope();
    const timer = new CancellationScope();
    void timer
      .run(() => sleep(ms, { summary: `longest wait for ${this.plan.delegate.provider}` }))
      .then(() => {
        isOver = true;
        working.cancel();
      })
      .catch(() => undefined);
    await working
      .run(work)
      .catch((error: unknown) => log.info('delegation interrupted', { error: String(error) }));
    timer.cancel();
    return isOver;
  }

  /**
   * The jobs to run now. One call at a time: of two at once, each would return the jobs that the other one has made, and
   * these would run twice side by side.
   */
  async #openJobs(how: HowToOpen): Promise<readonly DelegatedJob[]> {
    while (this.#isOpening && patched('open-in-turn')) {
      await condition(() => !this.#isOpening);
      // The call before has opened what this one was to open.
      if (this.progress.open.isEmpty && how.stopping !== true) return [];
    }
    this.#isOpening = true;
    const openRanges = this.progress.open;
    const openParts = openPartsActivity(summaryText(`jobs of ${this.plan.model}`));
    const part = delegatedPart(this.#context, this.plan);
    const ranges = openRanges.takeAll();
    try {
      const open = ranges.map(({ from, to }) => ({ from, to }));
      const opened = await openParts({ ...part, open, unanswered: this.#unanswered, ...how });
      return partsOf(this.#notRunning(opened.jobs), opened.jobsPerPart ?? 1);
    } finally {
      this.#isOpening = false;
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

type HowToOpen = Pick<OpenPartsInput, 'stopping' | 'isOver'>;

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
