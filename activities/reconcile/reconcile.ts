import { log } from '@temporalio/activity';
import { forEachConcurrently } from '../../core/async/for-each-concurrently';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { Heartbeat } from '../runtime/heartbeat';
import { withHeartbeat } from '../runtime/with-heartbeat';
import type {
  ReconcileAction,
  ReconcileActivities,
  ReconcilePageInput,
  ReconcilePageResult,
} from './contract';
import { endBatch, type EndBatchDeps } from './end-batch';
import { addOverdueTime, findSuspects, type FindSuspectsDeps } from './find-suspects';
import { judgeBatch, type JudgeDeps } from './judge-batch';
import type { ReconcileObserver } from './ports';
import { plannedAction, recover, type RecoverDeps } from './recover';

/** What reconcile reads, writes and calls. */
export interface ReconcileDeps extends FindSuspectsDeps, JudgeDeps, RecoverDeps, EndBatchDeps {
  readonly batches: FindSuspectsDeps['batches'] & RecoverDeps['batches'] & EndBatchDeps['batches'];
  readonly workflows: FindSuspectsDeps['workflows'] &
    JudgeDeps['workflows'] &
    RecoverDeps['workflows'] &
    EndBatchDeps['workflows'];
  readonly observer: ReconcileObserver;
}

const BATCHES_AT_ONCE = 16;
/** After this time a page does not begin to end another batch. The next cycle ends the others. */
const ENDING_MS = 3 * 60_000;

/**
 * One page of reconcile (docs/design/ends.md#reconcile). Every step is idempotent, even if two workers do it
 * at once. If a batch fails, that is counted, and the next cycle tries again.
 * @throws postgres_unavailable if the page cannot be read
 */
export function createReconcilePage(deps: ReconcileDeps): ReconcileActivities['reconcilePage'] {
  return (input) =>
    withHeartbeat(async (heartbeat) => {
      try {
        return await reconcilePage(deps, input, heartbeat);
      } catch (error) {
        deps.observer.failed();
        throw error;
      }
    });
}

async function reconcilePage(
  deps: ReconcileDeps,
  input: ReconcilePageInput,
  heartbeat: Heartbeat,
): Promise<ReconcilePageResult> {
  const { dryRun, cycleStartedAtMs } = input;
  const { suspects, examined, nextSeq } = await findSuspects(deps, input);
  const batches = dryRun ? suspects : await addOverdueTime(deps, suspects);
  const page = new Page(deps, { dryRun, heartbeat });
  const toEnd: OpenBatch[] = [];
  await forEachConcurrently(batches, BATCHES_AT_ONCE, (batch) =>
    page.attempt(batch, async () => {
      const judgement = await judgeBatch(deps, batch);
      if (dryRun) return plannedAction(deps, batch, judgement);
      if (judgement.kind !== 'end') return recover(deps, batch, judgement);
      toEnd.push(batch);
      return null;
    }),
  );
  // One after the other: each may take minutes.
  const untilMs = performance.now() + ENDING_MS;
  for (const batch of toEnd) {
    if (performance.now() < untilMs) {
      await page.attempt(batch, () => endBatch(deps, batch, () => heartbeat.check()));
    }
  }
  if (nextSeq === null && !dryRun) deps.observer.cycleEnded(Date.now() - cycleStartedAtMs);
  return { examined, actions: page.actions, errors: page.errors, nextSeq };
}

/** The actions and errors of a page. */
class Page {
  readonly actions: ReconcileAction[] = [];
  errors = 0;
  readonly #observer: ReconcileObserver;
  readonly #options: { readonly dryRun: boolean; readonly heartbeat: Heartbeat };

  constructor(
    { observer }: Pick<ReconcileDeps, 'observer'>,
    options: { dryRun: boolean; heartbeat: Heartbeat },
  ) {
    this.#observer = observer;
    this.#options = options;
  }

  /** Does the work on one batch; an error is counted and logged. Throws only when cancelled. */
  async attempt(batch: OpenBatch, work: () => Promise<ReconcileAction | null>): Promise<void> {
    this.#options.heartbeat.check();
    try {
      const action = await work();
      if (action === null) return;
      this.actions.push(action);
      if (!this.#options.dryRun) this.#observer.recovered(action.action);
    } catch (error) {
      this.errors++;
      this.#observer.failed();
      log.warn('batch not reconciled', { batchId: batch.id, error });
    }
  }
}
