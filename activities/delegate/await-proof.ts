import { pollDelayMs } from '../../core/delegation/intervals';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { OpenProvider } from './deps';
import type { JobAttempt } from './job-attempt';
import { jobToFind, observedCall, reportFailure, rowOf } from './job-attempt';
import type { Prover } from './prove-candidates';
import { proveCandidates } from './prove-candidates';
import { notBeyond, retryLater } from './retry-later';

/**
 * Waits until the candidates of a job are proven by their results, or refuted; returns the row as it is then: with
 * the id of the proven one, or free to be created (docs/design/provider-jobs.md#proof-by-results).
 * @throws a failure that is retried when the next look is due
 */
export async function awaitProof(
  attempt: JobAttempt,
  row: JobRow,
  signal: AbortSignal,
): Promise<JobRow> {
  const { deps, input, provider } = attempt;
  const { candidates } = row;
  // Another account does not know them. The lease is refused for the same reason.
  if (candidates === null || candidates.length === 0 || row.account !== provider.account)
    return row;
  const proof = await proveCandidates(row, candidates, proverOf(attempt, signal));
  const deleted =
    proof.gone.length === 0 ? [] : await unlisted(attempt, { row, signal }, proof.gone);
  for (const id of [...proof.refuted, ...deleted]) await deps.jobs.refuteCandidate(row.id, id);
  if (proof.proven !== null) await adoptCandidate(attempt, row, proof.proven);
  const now = await rowOf(attempt);
  const left = now.externalId === null ? (now.candidates?.length ?? 0) : 0;
  if (left === 0) return now;
  const message = `${provider.name}: ${left} jobs at the provider may be this one, and only their results can tell`;
  throw retryLater(message, notBeyond(proofPauseMs(row, provider), input.giveUpAtMs, Date.now()));
}

/** Time until the next look at candidates, ms: as long as if one of them were the job. */
export function proofPauseMs(
  { firstCreateAtMs, createdAtMs }: JobRow,
  { config, api }: OpenProvider,
): number {
  return pollDelayMs({
    ageMs: Date.now() - (firstCreateAtMs ?? createdAtMs),
    initialMs: config.poll_initial,
    maxMs: config.poll_max,
    minMs: api.capabilities.minPollMs,
    allDone: false,
    random: Math.random(),
  });
}

/** For attempts of activities. */
export function proverOf(attempt: JobAttempt, signal: AbortSignal): Prover {
  const { deps, input, provider } = attempt;
  return {
    ...{ provider, jobs: deps.jobs, endpoint: input.endpoint },
    call: async (what, ask) => {
      const result = await observedCall(attempt, what, ask, signal);
      if (result.outcome !== 'ok') reportFailure(attempt, what, result);
      return result;
    },
  };
}

/** Notes the proven candidate as the job. That another row has it refutes it after all. */
export async function adoptCandidate(
  { deps, provider }: JobAttempt,
  { id }: JobRow,
  externalId: string,
): Promise<void> {
  const log = { jobId: id, externalId, provider: provider.name };
  const { kind } = await deps.jobs.recordCreated(id, { externalId, adopted: true });
  if (kind === 'recorded') {
    deps.logger.info(log, 'job submitted');
    deps.observer.adopted(provider.name);
  } else if (kind === 'owned_by_other') {
    deps.logger.error(log, 'the row cannot take the id of a job');
    await deps.jobs.refuteCandidate(id, externalId);
  }
}

/** Of some candidates, those that the provider no longer lists: their owner has deleted them. */
async function unlisted(
  attempt: JobAttempt,
  { row, signal }: { readonly row: JobRow; readonly signal: AbortSignal },
  candidates: readonly string[],
): Promise<string[]> {
  const job = await jobToFind(attempt, row);
  const { api } = attempt.provider;
  const found = await observedCall(attempt, 'find', (options) => api.find(job, options), signal);
  if (found.outcome !== 'ok' || found.value.kind === 'job') return [];
  const listed = found.value.kind === 'none' ? [] : found.value.externalIds;
  return candidates.filter((id) => !listed.includes(id));
}
