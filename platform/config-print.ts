import { stringify } from 'yaml';
import { redactConfig } from './config-redact';
import type { Config } from './config-schema';
import { formatDuration } from './units';

/** Settings that hold milliseconds and are written as `5m`. */
const DURATIONS = new Set([
  'header_timeout',
  'body_grace',
  'drain_budget',
  'heartbeat_timeout',
  'request_timeout',
  'initial_backoff',
  'max_backoff',
  'cancel_grace',
  'expiry_grace',
  'finalize_window',
  'reroute_after',
  'output_files',
  'batches',
  'scratch',
  'idle_series',
]);

/** The configuration as a YAML file that says the same, without secrets. */
export function printConfig(config: Config): string {
  return stringify(redactConfig(config), (key: unknown, value: unknown) =>
    typeof value === 'number' && DURATIONS.has(String(key)) ? formatDuration(value) : value,
  );
}
