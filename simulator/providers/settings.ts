import { z } from 'zod';
import { NightshiftError } from '../../core/errors';

const PROVIDER_CALLS = [
  'files.create',
  'files.list',
  'files.retrieve',
  'files.delete',
  'files.content',
  'batches.create',
  'batches.list',
  'batches.retrieve',
  'batches.cancel',
  'batches.delete',
  'tokens.create',
] as const;
/** A call of the simulated providers, as faults and statistics name it. */
export type ProviderCallName = (typeof PROVIDER_CALLS)[number];

const milliseconds = z.number().min(0).max(86_400_000);
const share = z.number().min(0).max(1);

const callFault = z.strictObject({
  call: z.enum(PROVIDER_CALLS),
  times: z.int().min(1).nullable().default(null),
  status: z.int().min(300).max(599).nullable().default(null),
  code: z.string().nullable().default(null),
  retry_after_sec: z.int().min(0).nullable().default(null),
  drop: z.boolean().default(false),
  accepts: z.boolean().default(false),
  delay_ms: milliseconds.default(0),
  bytes_per_sec: z.int().min(1).nullable().default(null),
  cut: z.boolean().default(false),
});
/** A fault of one kind of call (docs/design/simulator.md#faults-of-calls). */
export type CallFault = z.infer<typeof callFault>;

const settings = z.strictObject({
  validating_ms: milliseconds,
  running_ms: milliseconds,
  finalizing_ms: milliseconds,
  cancelling_ms: milliseconds,
  hold: z.boolean(),
  ends: z.array(z.enum(['completed', 'failed', 'expired', 'cancelled'])).min(1),
  answered_share: share,
  failed_lines: z.array(z.int().min(1)),
  max_enqueued_tokens: z.int().min(0),
  running_word: z.string().min(1),
  results: z.array(z.enum(['shuffled', 'missing', 'doubled', 'foreign', 'cut_off'])),
  results_lag_ms: milliseconds,
  empty_error_file: z.boolean(),
  list_lag_ms: milliseconds,
  max_page: z.int().min(1).max(100),
  keys: z.array(z.string().min(1)),
  faults: z.array(callFault),
});
/**
 * How the simulated providers behave, with the names of `/simulator/providers/config`
 * (docs/design/simulator.md#providers).
 */
export type ProviderSettings = z.infer<typeof settings>;

/** Providers that never fail, and whose jobs end at once. */
export const DEFAULT_PROVIDER_SETTINGS: ProviderSettings = {
  validating_ms: 0,
  running_ms: 0,
  finalizing_ms: 0,
  cancelling_ms: 0,
  hold: false,
  ends: ['completed'],
  answered_share: 0.5,
  failed_lines: [],
  max_enqueued_tokens: 0,
  running_word: 'in_progress',
  results: [],
  results_lag_ms: 0,
  empty_error_file: false,
  list_lag_ms: 0,
  max_page: 100,
  keys: [],
  faults: [],
};

const patch = settings.partial();

/**
 * Replaces the members of `current` that `change` names.
 * @throws invalid_request for an unknown member or an invalid value
 */
export function changedProviderSettings(
  current: ProviderSettings,
  change: unknown,
): ProviderSettings {
  const parsed = patch.safeParse(change);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const param = issue?.path.join('.') ?? '';
    const at = param === '' ? '' : `${param}: `;
    throw new NightshiftError('invalid_request', `${at}${issue?.message ?? 'invalid'}`, { param });
  }
  const named = Object.entries(parsed.data).filter(([, value]) => value !== undefined);
  return { ...current, ...Object.fromEntries(named) };
}
