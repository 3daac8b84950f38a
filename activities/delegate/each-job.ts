import type { ApplicationFailure } from '@temporalio/activity';
import { forEachConcurrently } from '../../core/async/for-each-concurrently';
import type { JobInput } from './contract';
import { isWait, retryLater } from './retry-later';

/** Jobs of one part that are worked on at once. */
const CONCURRENCY = 8;

/** The inputs of the single jobs of a part. */
export function jobsOf(input: JobInput): JobInput[] {
  const { jobs } = input.job;
  return jobs === undefined ? [input] : jobs.map((job) => ({ ...input, job }));
}

/** What has become of the jobs of a part. */
export interface EachJob<Value> {
  /** Of those whose work is done. */
  readonly values: readonly Value[];
  /** Of the others: why they wait, and for how long. */
  readonly waits: readonly ApplicationFailure[];
}

/**
 * Does `work` for some jobs of a part, a few at a time. That one of them has to wait holds up no other.
 * @throws the first failure that is no wait, after all jobs had their turn
 */
export async function eachJob<Job, Value>(
  jobs: readonly Job[],
  work: (one: Job) => Promise<Value>,
): Promise<EachJob<Value>> {
  const values: Value[] = [];
  const waits: ApplicationFailure[] = [];
  const faults: unknown[] = [];
  await forEachConcurrently(jobs, CONCURRENCY, async (one) => {
    try {
      values.push(await work(one));
    } catch (error) {
      if (isWait(error)) waits.push(error);
      else faults.push(error);
    }
  });
  if (faults.length > 0) throw faults[0];
  return { values, waits };
}

/** Fails until no job of the part waits. The next attempt begins when the first of them goes on. */
export function throwWaits({ values, waits }: EachJob<unknown>): void {
  const [first] = [...waits].sort((a, b) => delayOf(a) - delayOf(b));
  if (first === undefined) return;
  if (values.length + waits.length === 1) throw first;
  const open = `${waits.length} of ${values.length + waits.length} jobs wait`;
  throw retryLater(`${open}; ${first.message}`, delayOf(first));
}

/** How long a wait lasts, ms. */
export function delayOf({ nextRetryDelay }: ApplicationFailure): number {
  return typeof nextRetryDelay === 'number' ? nextRetryDelay : 0;
}
