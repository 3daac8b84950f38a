import fs from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../platform/package-root';
import { createMetricsRegistry } from '../../platform/metrics';
import type { Selector } from './promql-names';
import { valuesOf } from './promql-names';

/** A series as docs/metrics.md describes it. */
export interface DescribedMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** Labels that every series has: of Prometheus, of histograms, and of ours. */
const COMMON_LABELS = ['job', 'instance', 'le', 'process'];
/** Series that Prometheus makes itself. */
const PROMETHEUS = ['up', 'ALERTS'];

/** The page that a test compares with the registries. */
export function metricsPage(): { readonly text: string; readonly metrics: DescribedMetric[] } {
  const text = fs.readFileSync(path.join(packageRoot(), 'docs', 'metrics.md'), 'utf8');
  const rows = text.matchAll(/^\| `([a-z0-9_]+)` \| (counter|gauge|histogram) \| ([^|]*) \|/gm);
  const metrics = [...rows].map(([, name = '', type = '', labels = '']) => {
    return {
      name,
      type,
      labels: [...labels.matchAll(/`([a-zA-Z_]+)`/g)].map(([, label = '']) => label),
    };
  });
  return { text, metrics };
}

/** What is wrong with a selector: a series, a label or a value that the page does not have. */
export function unknownIn(selector: Selector, page = metricsPage()): string[] {
  const { name, matchers } = selector;
  if (PROMETHEUS.includes(name) || nodeMetrics().includes(name)) return [];
  const metric = page.metrics.find((one) => namesOf(one).includes(name));
  if (metric === undefined) return [`${name} is not on the page`];
  const labels = [...metric.labels, ...COMMON_LABELS];
  return matchers.flatMap((matcher) => {
    if (!labels.includes(matcher.label)) return [`${name} has no label ${matcher.label}`];
    if (COMMON_LABELS.includes(matcher.label)) return [];
    const values = valuesOf(matcher).filter((value) => !/^\d+$/.test(value));
    return values
      .filter((value) => !page.text.includes(`\`${value}\``))
      .map((value) => `${name} has no ${matcher.label}="${value}"`);
  });
}

/** Labels of the series that an expression selects; null if one of them is Node's or Prometheus' own. */
export function labelsOf(selectors: readonly Selector[], page = metricsPage()): Set<string> {
  const metrics = page.metrics.filter((metric) =>
    selectors.some(({ name }) => namesOf(metric).includes(name)),
  );
  return new Set([...COMMON_LABELS, ...metrics.flatMap(({ labels }) => labels)]);
}

/** Names of the series of a metric. */
function namesOf({ name, type }: DescribedMetric): string[] {
  if (type !== 'histogram') return [name];
  return ['_bucket', '_sum', '_count'].map((suffix) => name + suffix);
}

let known: string[] | undefined;

/** Node's own metrics, which every process exports. */
function nodeMetrics(): string[] {
  known ??= createMetricsRegistry('worker')
    .getMetricsAsArray()
    .map(({ name }) => name);
  return known;
}
