import { z } from 'zod';
import { STATE_STATUSES, stateStatus } from '../../core/delegation/provider-state';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { counter, unixSeconds } from './values';

const errorShape = z.strictObject({ code: z.string().nullable(), message: z.string() });

/** A job of a batch at a provider, an extension of ours (docs/design/provider-jobs.md#in-the-api). */
export const jobShape = z
  .strictObject({
    id: z.string(),
    object: z.literal('batch.job'),
    batch_id: z.string(),
    model: z.string().meta({ description: "The model's name in the input file" }),
    provider: z.string().meta({ description: 'The name of the provider in the settings' }),
    provider_type: z.string().nullable().meta({
      description: 'The type of the provider; null if the settings have no provider of this name',
    }),
    status: z.enum(STATE_STATUSES),
    provider_status: z.string().nullable().meta({ description: "The provider's word" }),
    external_id: z.string().nullable().meta({ description: 'The id of the job at the provider' }),
    external_input_id: z
      .string()
      .nullable()
      .meta({ description: 'The id or name of its input at the provider; null before the upload' }),
    generation: counter,
    request_counts: z.strictObject({ total: counter, completed: counter, failed: counter }),
    usage: z.strictObject({
      input_tokens: counter,
      input_tokens_details: z.strictObject({ cached_tokens: counter }),
      output_tokens: counter,
      total_tokens: counter,
    }),
    cost: z.number().min(0).nullable().meta({ description: 'US dollars; null without a price' }),
    poll_failures: counter.meta({ description: 'Failed looks at the job since the last good one' }),
    created_at: unixSeconds,
    submitted_at: unixSeconds.nullable(),
    ended_at: unixSeconds.nullable(),
    error: errorShape.nullable(),
  })
  .meta({ id: 'BatchJob' });

/** A job on the wire. */
export type JobObject = Readonly<z.infer<typeof jobShape>>;

/**
 * The wire form of a job.
 * @param providerType of its provider in the settings; null if they have none of this name
 */
export function toJobObject(job: JobRow, providerType: string | null): JobObject {
  const { inputTokens, cachedTokens, outputTokens } = job.usage;
  return {
    id: job.id,
    object: 'batch.job',
    batch_id: job.batchId,
    model: job.model,
    provider: job.provider,
    provider_type: providerType,
    status: stateStatus(job),
    provider_status: job.providerStatus,
    external_id: job.externalId,
    external_input_id: job.upload,
    generation: job.generation,
    // A provider counts a job's lines only some time after it has accepted the job.
    request_counts: { ...job.counts, total: job.counts.total || (job.lines ?? 0) },
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cachedTokens },
      output_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
    },
    cost: job.costUsd,
    poll_failures: job.pollFailures,
    created_at: seconds(job.createdAtMs),
    submitted_at: job.submittedAtMs === null ? null : seconds(job.submittedAtMs),
    ended_at: job.endedAtMs === null ? null : seconds(job.endedAtMs),
    error: publicError(job),
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Anything else could be a text, with names of the account in it. */
const CODE = /^[a-z][a-z0-9_.]{0,63}$/;

/**
 * Why a job brought nothing, in our words. The provider's text may name the organization or quote a key, so it
 * is for operators only.
 */
function publicError(job: JobRow): JobObject['error'] {
  if (stateStatus(job) !== 'failed') return null;
  const code = job.error?.code ?? job.error?.reason ?? null;
  return { code: code !== null && CODE.test(code) ? code : null, message: reasonOf(job) };
}

function reasonOf({ step, outcome, externalId }: JobRow): string {
  if (step === 'refused') return 'The provider refused the job.';
  if (outcome === 'failed') return 'The job failed at the provider.';
  return externalId === null
    ? 'The job was given up before the provider had accepted it.'
    : 'The job was given up before its answers were delivered.';
}
