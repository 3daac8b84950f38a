import { stringify } from 'yaml';
import { redactConfig } from './config-redact';
import type { Config } from './config-schema';
import { formatDuration } from './units';

/** Settings in milliseconds, printed as durations such as `5m`. */
const DURATIONS = new Set([
  'header_timeout',
  'body_grace',
  'drain_budget',
  'heartbeat_timeout',
  'request_timeout',
  'audio_request_timeout',
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
  'flush_interval',
  'slow_request',
  'stall_timeout',
  'interval',
  'timeout',
  'queue_ttl',
  'batch_queue_ttl',
  'no_backend_ttl',
  'expiry_cleanup_interval',
  'promote_after',
  'harvest_grace',
  'transfer_timeout',
  'create_lease',
  'create_settle',
  'poll_initial',
  'poll_max',
  'job_timeout',
  'fallback_before',
  'cancel_lead',
  'min_window',
]);

/** The configuration as an equivalent YAML file, without secrets. */
export function printConfig(config: Config): string {
  return stringify(redactConfig(config), (key: unknown, value: unknown) =>
    typeof value === 'number' && DURATIONS.has(String(key)) ? formatDuration(value) : value,
  );
}
