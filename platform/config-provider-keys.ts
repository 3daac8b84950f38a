import { z } from 'zod';
import { count, duration, durationText, nonEmpty, serverKeys, size } from './config-values';

/** Settings of providers of any type. */
export const providerKeys = {
  ...serverKeys,
  /** Of calls that carry no file. */
  request_timeout: duration('60s'),
  /** Of uploads and downloads. */
  transfer_timeout: duration('2h'),
  /** Of one attempt to create a job. */
  create_lease: duration('90s'),
  /** How long a create whose answer was lost may still take effect. Without it: what the type states. */
  create_settle: durationText.optional(),
  poll_initial: duration('30s'),
  poll_max: duration('10m'),
  job_timeout: duration('26h'),
  max_open_jobs: count.prefault(10),
  max_enqueued_tokens: count.optional(),
  max_lines: count.prefault(50_000),
  max_bytes: size('190MiB'),
  min_lines: count.prefault(1),
  /** Whether inputs and results of jobs stay at the provider. */
  keep_remote: z.boolean().default(false),
};

/** Of types whose list shows our marker. */
export const markedKeys = {
  /** Whether jobs of this installation that no row knows are cancelled. */
  cancel_orphans: z.boolean().default(false),
};

/** The service identifies one of these languages. */
export const locales = z.array(nonEmpty).min(1).max(10).default(['en-US']);
