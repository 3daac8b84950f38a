/** How series of several processes become one. Those that are not named here are added up. */
const LARGEST = new Set([
  'batch_waiting_lines',
  'gateway_breaker_open',
  'model_paused',
  'nodejs_version_info',
  'process_max_fds',
  'processor_max_inflight_concurrency',
  'provider_enqueued_tokens',
  'provider_jobs_open',
  'provider_jobs_orphaned',
  'provider_poll_age_seconds',
]);
const SMALLEST = new Set([
  'dependency_up',
  'model_concurrency_limit',
  'process_start_time_seconds',
]);
const LARGEST_PREFIX = 'nodejs_eventloop_lag_';

interface Family {
  /** Its `# HELP` and `# TYPE` lines. */
  readonly comments: Set<string>;
  readonly samples: Map<string, number>;
}

/**
 * Makes one page of the pages of several processes, in the Prometheus text format: counters, histograms and most gauges
 * are added up; of states, the one that matters is kept (docs/metrics.md#processes-of-a-worker).
 */
export function mergeMetrics(pages: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const page of pages) addPage(families, page);
  const text = [...families.values()].flatMap(({ comments, samples }) => [
    ...comments,
    ...[...samples].map(([series, value]) => `${series} ${formatted(value)}`),
    '',
  ]);
  return text.join('\n');
}

function addPage(families: Map<string, Family>, page: string): void {
  let name = '';
  for (const line of page.split('\n')) {
    if (line === '') continue;
    const comment = /^# (?:HELP|TYPE) (\S+)/.exec(line);
    if (comment !== null) {
      name = comment[1] ?? '';
      familyOf(families, name).comments.add(line);
    } else if (!line.startsWith('#')) addSample(families, name, line);
  }
}

function addSample(families: Map<string, Family>, family: string, line: string): void {
  // Label values may contain blanks; the value of a sample does not.
  const at = line.lastIndexOf(' ');
  const series = line.slice(0, at);
  const own = series.split('{', 1)[0] ?? '';
  const value = Number(line.slice(at + 1));
  const { samples } = familyOf(families, own.startsWith(family) ? family : own);
  const known = samples.get(series);
  samples.set(series, known === undefined ? value : merged(own, known, value));
}

function familyOf(families: Map<string, Family>, name: string): Family {
  const known = families.get(name);
  if (known !== undefined) return known;
  const family = { comments: new Set<string>(), samples: new Map<string, number>() };
  families.set(name, family);
  return family;
}

function merged(name: string, a: number, b: number): number {
  if (LARGEST.has(name) || name.startsWith(LARGEST_PREFIX)) return Math.max(a, b);
  if (SMALLEST.has(name)) return Math.min(a, b);
  return a + b;
}

function formatted(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
