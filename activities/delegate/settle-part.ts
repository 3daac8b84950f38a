import { PRIORITY } from '../../core/chunks/priority';
import { isSettled } from '../../core/delegation/job-steps';
import { leftoverCode } from '../../core/delegation/leftovers';
import type { Range } from '../../core/range';
import type { LineErrorCode } from '../../core/openai/result-line';
import type { ProviderJobs } from '../../storage/postgres/provider-jobs/repository';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { ExecuteChunkInput, ExecuteChunkResult } from '../contract';
import type { ExecuteDeps } from '../execute/deps';
import { endLines } from '../execute/end-lines';
import { asFailure } from '../runtime/failure';
import type { SettlePartInput } from './contract';

/**
 * The activity that ends plan entries `[from, to)` which no provider has answered, each with the answer that was kept
 * for it, or with the code that says why it has none. Answers in the journal stay as they are (docs/design/delegation.md#leftovers).
 */
export function createSettlePart(
  deps: ExecuteDeps & { readonly jobs: Pick<ProviderJobs, 'ofModel'> },
): (input: SettlePartInput) => Promise<ExecuteChunkResult> {
  return async (input) => {
    const rows = await deps.jobs.ofModel(input.batchId, input.safe).catch((error: unknown) => {
      throw asFailure(error);
    });
    const last = lastJobs(rows, input);
    return endLines(chunkInput(input), deps, (position) =>
      codeFor(last(position), input.giveUpAtMs),
    );
  };
}

/** The last job that has covered each position of a range. It is looked up once for all: a model may have thousands. */
function lastJobs(rows: readonly JobRow[], range: Range): (position: number) => JobRow | undefined {
  const last = new Array<JobRow | undefined>(range.to - range.from);
  for (const row of [...rows].sort(
    (a, b) => a.generation - b.generation || a.ordinal - b.ordinal,
  )) {
    const from = Math.max(row.from, range.from) - range.from;
    const to = Math.min(row.to, range.to) - range.from;
    if (from < to) last.fill(row, from, to);
  }
  return (position) => last[position - range.from];
}

/** Why a line has no answer, by the last job that has covered it. */
function codeFor(last: JobRow | undefined, giveUpAtMs: number): LineErrorCode {
  if (last === undefined) return Date.now() >= giveUpAtMs ? 'provider_expired' : 'provider_failed';
  const endedAtMs = last.endedAtMs ?? Date.now();
  return leftoverCode(last, endedAtMs >= giveUpAtMs && isSettled(last.step));
}

function chunkInput(input: SettlePartInput): ExecuteChunkInput {
  const { batchId, planNonce, tenant, endpoint, inputKey, model, safe, from, to } = input;
  return {
    ...{ batchId, planNonce, tenant, endpoint, inputKey, model, safe, from, to },
    deadlineMs: input.deadlineMs,
    boxMs: 0,
    p95Ms: null,
    priority: PRIORITY.normal,
  };
}
