import type { ReloadedCredential, ReloadObserver, ReloadResult } from './credential-watch';
import { hasCredentialFiles, type TemporalConfig } from './temporal-credentials';

/** The counter `credential_reloads_total`. */
export interface ReloadCounter {
  inc(
    labels: { readonly credential: ReloadedCredential; readonly result: ReloadResult },
    value?: number,
  ): void;
}

const CREDENTIALS = ['temporal_api_key', 'temporal_certificates'] as const;
const RESULTS = ['success', 'failure'] as const;

/**
 * Counts reloads. If the settings name files, all series begin at 0: without that, Prometheus does not see the
 * first increase (docs/metrics.md#reading-the-tables).
 */
export function countReloads(counter: ReloadCounter, config: TemporalConfig): ReloadObserver {
  if (hasCredentialFiles(config)) {
    for (const credential of CREDENTIALS) {
      for (const result of RESULTS) counter.inc({ credential, result }, 0);
    }
  }
  return { reloaded: (credential, result) => counter.inc({ credential, result }) };
}
