import { NightshiftError } from '../../core/errors';
import { redactUrl, type Config } from '../../platform/config';
import { lazy } from '../lazy-modules';
import type { Check } from './doctor-result';

/** Later than any job, so the look-up ends after the first page of the list. */
const FROM_MS = Number.MAX_SAFE_INTEGER;

/** One check for each provider: the look-up of a job, which is free of charge and needs a valid key. */
export function providerChecks(config: Config): Check[] {
  return Object.entries(config.providers).map(([name, { url }]) => ({
    name: `provider ${name}`,
    run: async () => {
      await lookUp(name, config);
      return `${redactUrl(url)} accepts the key`;
    },
    advice: `Correct providers.${name}.url, or put a valid key into its file`,
  }));
}

/** @throws unavailable with what the provider answered; config_invalid without a readable key */
async function lookUp(name: string, config: Config): Promise<void> {
  const providers = lazy.openProviders().openProviders({
    ...config,
    // The other providers have checks of their own.
    providers: Object.fromEntries(Object.entries(config.providers).filter(([one]) => one === name)),
  });
  try {
    const job = {
      ...{ jobId: 'job_doctor', storeId: 'doctor', endpoint: '', model: '', lines: 0, hops: 0 },
      // Types without a list look at the upload of the job.
      ...{ remoteInput: 'doctor', window: null, listFromMs: FROM_MS },
    };
    const signal = AbortSignal.timeout(10_000);
    const result = await providers.get(name)?.api.find(job, { signal });
    if (result === undefined || result.outcome === 'ok') return;
    const { outcome, failure } = result;
    throw new NightshiftError('unavailable', `${outcome}: ${failure.message}`);
  } finally {
    await providers.close();
  }
}
