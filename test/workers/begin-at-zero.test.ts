import fs from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../platform/package-root';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { beginAtZero } from '../../workers/begin-at-zero';
import { metricValues } from '../support/metric-values';

const PAGE = fs.readFileSync(path.join(packageRoot(), 'docs', 'metrics.md'), 'utf8');

async function shown(): Promise<Record<string, number>> {
  const registry = createMetricsRegistry('worker');
  registry.clear();
  beginAtZero(createWorkerMetrics(registry));
  return metricValues(await registry.metrics());
}

it('shows every result and reason of docs/metrics.md with 0', async () => {
  const rows = [...PAGE.matchAll(/^\| `(\w+)` \| `(\w+)` \| (?:a|the|Postgre)/gm)];
  expect(rows.length).toBeGreaterThan(8);
  const listed = rows.map(
    ([, result, reason]) => `jobs_processed_total{result="${result}",reason="${reason}"}`,
  );
  const all = Object.entries(await shown()).filter(([name]) => name.startsWith('jobs_processed'));
  expect(all).toEqual(expect.arrayContaining(listed.map((name) => [name, 0])));
  expect(all).toHaveLength(listed.length);
});

it('shows every repair of docs/metrics.md with 0', async () => {
  const [row = ''] = /^\| `batch_reconciler_orphans_recovered_total`.*$/m.exec(PAGE) ?? [];
  const [, ...names] = [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const actions = names.slice(names.indexOf('started'));
  const all = Object.entries(await shown()).filter(([name]) => name.includes('orphans'));
  expect(all.sort()).toEqual(
    actions
      .map((action) => [`batch_reconciler_orphans_recovered_total{action="${action}"}`, 0])
      .sort(),
  );
});
