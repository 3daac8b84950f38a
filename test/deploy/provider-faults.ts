import type { RuleTest } from './promtool';

const OWN = 'job="nightshift-worker",instance="worker-1"';

/** An installation with a provider whose jobs go well. */
const WELL = {
  'up{job="nightshift-api",instance="api-1"}': '1x60',
  'up{job="nightshift-worker",instance="worker-1"}': '1x60',
  [`batch_reconciler_cycle_duration_seconds_count{${OWN}}`]: '1+1x60',
  [`provider_calls_total{provider="openai",call="status",outcome="ok",${OWN}}`]: '0+1x60',
  [`provider_calls_total{provider="openai",call="status",outcome="transient",${OWN}}`]: '0+1x60',
  // A key that may not delete files.
  [`provider_calls_total{provider="openai",call="cleanup",outcome="auth",${OWN}}`]: '0+1x60',
  [`provider_jobs_open{provider="openai",${OWN}}`]: '3x60',
  [`provider_poll_age_seconds{provider="openai",${OWN}}`]: '600x60',
  [`provider_jobs_orphaned{provider="openai",${OWN}}`]: '0x60',
};

/** A fault from minute 10 on, as it shows in one series. */
function fault(
  name: string,
  series: Readonly<Record<string, string>>,
  firing: readonly string[],
): RuleTest {
  const expected = [
    { atMin: 9, firing: [] },
    { atMin: 25, firing },
  ];
  return { name, series: { ...WELL, ...series }, expected };
}

/** Faults of providers. */
export const PROVIDER_FAULTS: readonly RuleTest[] = [
  fault('a provider runs jobs well, and its key may not delete files', {}, []),
  fault(
    // The series begins with the first refusal.
    'a provider refuses the key, and each of two jobs asks again every five minutes',
    {
      [`provider_calls_total{provider="openai",call="status",outcome="auth",${OWN}}`]:
        '_x9 2x4 4x4 6x4 8x4 10x40',
    },
    ['NightshiftProviderRefusesKey'],
  ),
  fault(
    'no look at a job succeeds for half an hour',
    { [`provider_poll_age_seconds{provider="openai",${OWN}}`]: '600x10 1750 1810+60x50' },
    ['NightshiftJobsNotLookedAt'],
  ),
  {
    name: 'two searches in a row find jobs that no row knows',
    series: {
      ...lasting(WELL),
      [`provider_jobs_orphaned{provider="openai",${OWN}}`]: '0x10 2x110',
    },
    expected: [
      { atMin: 70, firing: [] },
      { atMin: 80, firing: ['NightshiftJobsOrphaned'] },
    ],
  },
];

/** The same series for two hours. */
function lasting(series: Readonly<Record<string, string>>): Record<string, string> {
  const longer = ([key, values]: [string, string]) => [key, values.replace(/x60$/, 'x120')];
  return Object.fromEntries(Object.entries(series).map(longer)) as Record<string, string>;
}
