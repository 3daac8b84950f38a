import { createHash } from 'node:crypto';
import { AFTER_HARVEST_MS } from '../../core/delegation/intervals';
import { jobId } from '../../core/delegation/job-ids';
import type { JobToMake, KnownJob, NextJobs } from '../../core/delegation/next-jobs';
import { nextJobs } from '../../core/delegation/next-jobs';
import { PROVIDER_TYPES } from '../../core/delegation/provider-types';
import type { ProviderConfig } from '../../platform/config-providers';
import type { BatchRow } from '../../storage/postgres/batches/types';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { asFailure } from '../runtime/failure';
import type { DelegatedJob, OpenedParts, OpenPartsInput } from './contract';
import type { DelegateDeps } from './deps';

/** Jobs of a model that run at once. More would not fit into one result; they are opened when these have returned. */
const MAX_JOBS = 1_024;

/** What {@link createOpenParts} needs. */
export type OpenPartsDeps = Pick<DelegateDeps, 'jobs' | 'batches' | 'config' | 'logger'> & {
  accountOf(provider: ProviderConfig): string;
};

/**
 * The activity that decides which jobs of a model run next, and makes their rows. It may run any number of
 * times: jobs have the same ids each time (docs/design/delegation.md#generations).
 */
export function createOpenParts(deps: OpenPartsDeps) {
  return async (input: OpenPartsInput): Promise<OpenedParts> => {
    try {
      const jobs = await openParts(input, deps);
      const jobsPerPart = jobsPerPartOf(input, deps);
      return jobsPerPart === 1 ? { jobs } : { jobs, jobsPerPart };
    } catch (error) {
      throw asFailure(error);
    }
  };
}

function jobsPerPartOf(
  { provider }: OpenPartsInput,
  { config }: Pick<OpenPartsDeps, 'config'>,
): number {
  const type = config.providers[provider]?.type;
  return type === undefined ? 1 : PROVIDER_TYPES[type].jobsPerPart;
}

async function openParts(input: OpenPartsInput, deps: OpenPartsDeps): Promise<DelegatedJob[]> {
  const { batchId, safe } = input;
  const rows = await deps.jobs.ofModel(batchId, safe);
  const { running, fresh } = await decide(input, rows, deps);
  if (isOver(input)) {
    for (const { id } of running) await deps.jobs.abandon(id);
    return [];
  }
  const room = Math.max(0, MAX_JOBS - running.length);
  const made = await makeRows(input, fresh.slice(0, room), deps);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return [...running.flatMap(({ id }) => byId.get(id) ?? []), ...made].map(delegatedJob);
}

/** Whether no job of the model can bring answers any more: then the rows must not stay open. */
function isOver({ isOver, stopping, giveUpAtMs, harvestGraceMs }: OpenPartsInput): boolean {
  if (isOver === true) return true;
  return stopping !== true && Date.now() > giveUpAtMs + harvestGraceMs + AFTER_HARVEST_MS;
}

async function decide(
  input: OpenPartsInput,
  rows: readonly JobRow[],
  { batches, config }: OpenPartsDeps,
): Promise<NextJobs> {
  const { batchId, model, open, unanswered, giveUpAtMs, stopping } = input;
  const provider = config.providers[input.provider];
  const row = await batches.find(batchId);
  // Without its settings or its batch, a model runs what it has begun.
  const mayBegin = provider !== undefined && row !== null && config.delegates[model] !== undefined;
  return nextJobs({
    jobs: rows.map(knownJob),
    ...{ open, unanswered, giveUpAtMs },
    nowMs: Date.now(),
    windowMs: row === null ? 0 : (row.expiresAtSec - row.createdAtSec) * 1000,
    generations: config.delegates[model]?.generations ?? 1,
    minLines: provider?.min_lines ?? 1,
    limits: {
      maxLines: provider?.max_lines ?? 1,
      maxBytes: provider?.max_bytes ?? 1,
      totalBytes: row === null ? 0 : estimatedBytes(row, open),
    },
    isStopping: stopping === true || input.isOver === true || !mayBegin,
  });
}

/** Bytes of the open lines, as if all lines of the input were equally long. */
function estimatedBytes({ inputBytes, counts }: BatchRow, open: OpenPartsInput['open']): number {
  const positions = open.reduce((sum, { from, to }) => sum + to - from, 0);
  return Math.ceil(((inputBytes ?? 0) * positions) / Math.max(1, counts.total, positions));
}

async function makeRows(
  input: OpenPartsInput,
  fresh: readonly JobToMake[],
  { jobs, config, accountOf }: OpenPartsDeps,
): Promise<JobRow[]> {
  const provider = config.providers[input.provider];
  if (provider === undefined) return [];
  const made: JobRow[] = [];
  for (const { from, to, generation, ordinal } of fresh) {
    const identity = { batchId: input.batchId, safeModel: input.safe, from, generation, ordinal };
    const row = await jobs.open({
      ...identity,
      id: jobId(identity, sha256Hex),
      to,
      tenant: input.tenant,
      model: input.model,
      providerModel: config.delegates[input.model]?.model ?? input.model,
      provider: input.provider,
      account: accountOf(provider),
    });
    made.push(row);
  }
  return made;
}

function delegatedJob({ id, from, to, generation, ordinal }: JobRow): DelegatedJob {
  return { jobId: id, from, to, generation, ordinal };
}

function knownJob(row: JobRow): KnownJob {
  const { id, from, to, generation, ordinal, step, outcome, error } = row;
  return { id, from, to, generation, ordinal, step, outcome, reason: error?.reason ?? null };
}

/** SHA-256 of a text, as 64 hex digits. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
