import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Minutes to days: a provider may take its whole window. */
const DURATIONS = [30, 60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 345_600];

/** Jobs at the batch APIs of providers (docs/metrics.md#providers). */
export function createProviderSeries(registers: Registry[]) {
  return {
    ...jobSeries(registers),
    ...openJobSeries(registers),
    ...lineSeries(registers),
  } as const;
}

/** What happened to jobs. */
function jobSeries(registers: Registry[]) {
  return {
    providerCalls: new Counter({
      name: 'provider_calls_total',
      help: 'Calls to providers, by call and outcome',
      labelNames: ['provider', 'call', 'outcome'],
      registers,
    }),
    providerJobs: new Counter({
      name: 'provider_jobs_total',
      help: 'Jobs that have ended at their provider, by their end',
      labelNames: ['provider', 'status'],
      registers,
    }),
    providerJobDuration: new Histogram({
      name: 'provider_job_duration_seconds',
      help: 'Time from the acceptance of a job to its end',
      labelNames: ['provider'],
      buckets: DURATIONS,
      registers,
    }),
    providerJobsAdopted: new Counter({
      name: 'provider_jobs_adopted_total',
      help: 'Jobs found by a look-up, because the answer to their create was lost',
      labelNames: ['provider'],
      registers,
    }),
  } as const;
}

/** Jobs that have not ended. */
function openJobSeries(registers: Registry[]) {
  return {
    providerJobsOpen: new Gauge({
      name: 'provider_jobs_open',
      help: 'Jobs that a provider has accepted and that have not ended',
      labelNames: ['provider'],
      registers,
    }),
    providerTokens: new Gauge({
      name: 'provider_enqueued_tokens',
      help: 'Estimated input tokens of the jobs that the provider has accepted and that have not ended',
      labelNames: ['provider'],
      registers,
    }),
    providerPollAge: new Gauge({
      name: 'provider_poll_age_seconds',
      help: 'Time since the last good look at the open job that waits longest for one',
      labelNames: ['provider'],
      registers,
    }),
    providerJobsOrphaned: new Gauge({
      name: 'provider_jobs_orphaned',
      help: 'Jobs of this installation that a provider runs and that no row knows',
      labelNames: ['provider'],
      registers,
    }),
  } as const;
}

/** Lines of jobs, and what they cost. */
function lineSeries(registers: Registry[]) {
  return {
    providerLines: new Counter({
      name: 'provider_lines_total',
      help: 'Lines of collected jobs, by what they got',
      labelNames: ['provider', 'model', 'outcome'],
      registers,
    }),
    providerLinesAbandoned: new Counter({
      name: 'provider_abandoned_lines_total',
      help: 'Lines of jobs that were given up at the provider: their late answers are not delivered',
      labelNames: ['provider', 'model'],
      registers,
    }),
    providerCost: new Counter({
      name: 'provider_cost_usd_total',
      help: 'Cost of collected jobs by the configured prices, in US dollars',
      labelNames: ['provider', 'model'],
      registers,
    }),
  } as const;
}
