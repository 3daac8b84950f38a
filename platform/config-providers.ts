import { z } from 'zod';
import { chatProviders } from './config-chat-providers';
import { recordingProviders } from './config-recording-providers';
import { count, duration, nonEmpty, numberIn } from './config-values';

const price = numberIn(0, 1_000_000, 'a price in USD per million tokens');

/** Part of task queue names, metrics and rows. */
const providerName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'expected a name of lower-case letters, digits, - and _');

const provider = z.discriminatedUnion('type', [...chatProviders, ...recordingProviders]);

const delegate = z.strictObject({
  /** An entry of `providers`. */
  provider: nonEmpty,
  /** The provider's name of the model; without it, the name that clients use. */
  model: nonEmpty.optional(),
  /** Without it: `gateway` if `model_gateways` names the model, else `none`. */
  fallback: z.enum(['none', 'gateway']).optional(),
  fallback_before: duration('4h'),
  cancel_lead: duration('15m'),
  min_window: duration('0s'),
  generations: count.prefault(2),
  /** Empty: all tenants. */
  tenants: z.array(nonEmpty).default([]),
  /** Drops what the provider's format cannot express, instead of refusing the line. */
  drop_params: z.boolean().default(false),
  /** Of lines that state no limit, for formats that demand one. Without it: 4096. */
  default_max_tokens: count.optional(),
  /** Members of each translated request, in the provider's format. */
  extra_body: z.record(z.string(), z.unknown()).default({}),
  /** USD per million tokens. */
  price: z.strictObject({ input: price, cached: price.optional(), output: price }).optional(),
});

/** Settings of delegation (docs/design/delegation.md). */
export const delegationSections = {
  providers: z.record(providerName, provider).default({}),
  /** By the model name that clients use. */
  delegates: z.record(nonEmpty, delegate).default({}),
};

/** One account at one service. */
export type ProviderConfig = z.output<typeof provider>;
/** How one model is delegated. */
export type DelegateConfig = z.output<typeof delegate>;
