import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { keywordList } from '../core/batch/temporal-bounds';
import type { StopCause } from '../core/batch/status';
import type { OverdueQueue } from './chunk-in-flight';
import type { BatchResult, BatchResume } from './contract';
import { SEARCH_KEYS } from './contract';
import type { BatchPhase } from './details';
import { describeBatch } from './details';
import type { ModelRun } from './model-run';
import type { StopControl } from './stop';

/**
 * What operators see of a batch in the Temporal UI: search attributes and details
 * (docs/design/temporal.md#what-operators-see). Each upsert of search attributes is a command in the
 * history; the details are not.
 */
export class BatchDisplay {
  #phase: BatchPhase = 'validating';
  readonly #stop: StopControl;
  /** Models and requests have been written. */
  #isShown = false;
  #plan: Pick<BatchResume, 'lineCount' | 'unroutedLines'> | null = null;
  #models: readonly ModelRun[] = [];
  /** Queues from which no worker takes chunks. */
  #overdue: () => readonly OverdueQueue[] = () =>
    this.#models.map(({ overdue }) => overdue).filter((queue) => queue !== null);

  constructor(stop: StopControl) {
    this.#stop = stop;
  }

  /** Shows this plan from now on. */
  show(plan: BatchResume, models: readonly ModelRun[]): void {
    this.#plan = plan;
    this.#models = models;
  }

  /** Replaces the source of overdue queues, in histories whose chunks wait in their queue without a limit. */
  watchQueues(overdue: () => readonly OverdueQueue[]): void {
    this.#overdue = overdue;
  }

  /**
   * @param models those with a route
   * @param upserts whether search attributes are written too
   */
  enterInProgress(models: readonly string[], plan: BatchResume, upserts: boolean): void {
    this.#phase = 'in_progress';
    this.#isShown = true;
    const providers = plan.models.flatMap(({ delegate }) => delegate?.provider ?? []);
    if (upserts) {
      upsertSearchAttributes([
        { key: SEARCH_KEYS.phase, value: 'in_progress' },
        { key: SEARCH_KEYS.models, value: keywordList(models) },
        { key: SEARCH_KEYS.requests, value: plan.lineCount },
        ...(plan.showsProviders === true
          ? [{ key: SEARCH_KEYS.providers, value: keywordList([...new Set(providers)]) }]
          : []),
      ]);
    }
    this.refresh();
  }

  /** Shows that one activity does all of a small batch. Does nothing once the batch goes on step by step. */
  showSmall(): void {
    if (this.#plan !== null) return;
    upsertSearchAttributes([{ key: SEARCH_KEYS.phase, value: 'in_progress' }]);
  }

  /** Updates the list of models after one of them got a route. */
  showModels(models: readonly string[]): void {
    upsertSearchAttributes([{ key: SEARCH_KEYS.models, value: keywordList(models) }]);
    this.refresh();
  }

  enter(phase: BatchPhase): void {
    this.#phase = phase;
    upsertSearchAttributes([{ key: SEARCH_KEYS.phase, value: phase }]);
    this.refresh();
  }

  /** @param inOneUpsert false in older histories */
  enterStopping(cause: StopCause, inOneUpsert: boolean): void {
    const reason = { key: SEARCH_KEYS.stopReason, value: cause };
    if (!inOneUpsert) {
      this.enter('stopping');
      upsertSearchAttributes([reason]);
      return;
    }
    this.#phase = 'stopping';
    upsertSearchAttributes([{ key: SEARCH_KEYS.phase, value: this.#phase }, reason]);
    this.refresh();
  }

  /** Shows the final status and counts, and the plan of a batch that was not shown before. */
  showEnd({ status, total, completed, failed }: BatchResult, plan: BatchResume | null): void {
    const models = plan?.models.map(({ model }) => model) ?? [];
    upsertSearchAttributes([
      { key: SEARCH_KEYS.phase, value: status },
      ...(plan === null || this.#isShown
        ? []
        : [
            { key: SEARCH_KEYS.models, value: keywordList(models) },
            { key: SEARCH_KEYS.requests, value: plan.lineCount },
          ]),
    ]);
    setCurrentDetails(`**${status}**: ${total} requests, ${completed} completed, ${failed} failed`);
  }

  /** Writes the details anew. */
  refresh(): void {
    setCurrentDetails(
      describeBatch({
        phase: this.#phase,
        stopReason: this.#stop.cause,
        total: this.#plan?.lineCount ?? 0,
        unroutedLines: this.#plan?.unroutedLines ?? 0,
        models: this.#models,
        overdue: this.#overdue(),
      }),
    );
  }
}
