import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { packageRoot } from '../../platform/package-root';
import { headingAnchors } from '../architecture/citations';
import { alertRules } from './alert-rules';
import { labelsOf, metricsPage, unknownIn } from './metrics-page';
import { groupingLabelsOf, selectorsOf } from './promql-names';

const RULES = alertRules();
const named = RULES.map((rule) => [rule.alert, rule] as const);
const page = metricsPage();

describe('an alert rule that is shipped', () => {
  it('has a name of its own', () => {
    const names = RULES.map(({ alert }) => alert);
    expect(names.length).toBeGreaterThan(20);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => !/^Nightshift[A-Z]\w+$/.test(name))).toEqual([]);
  });

  it.each(named)('%s has a severity, a summary, a description and a runbook', (_name, rule) => {
    expect(rule.labels['severity']).toMatch(/^(critical|warning)$/);
    expect(Object.keys(rule.annotations).sort()).toEqual(['description', 'runbook', 'summary']);
    for (const text of [rule.annotations['summary'], rule.annotations['description']]) {
      expect(text).toMatch(/^[A-Z{'].*\.$/s);
    }
  });

  it.each(named)('%s links to a section that exists', (_name, rule) => {
    const [file = '', anchor = ''] = (rule.annotations['runbook'] ?? '').split('#');
    expect(['docs/troubleshooting.md', 'docs/operations.md']).toContain(file);
    const text = fs.readFileSync(path.join(packageRoot(), file), 'utf8');
    expect(headingAnchors(text)).toContain(anchor);
  });

  it.each(named)('%s uses series, labels and values that docs/metrics.md has', (_name, rule) => {
    const selectors = selectorsOf(rule.expr);
    expect(selectors.length).toBeGreaterThan(0);
    expect(selectors.flatMap((selector) => unknownIn(selector, page))).toEqual([]);
    const labels = labelsOf(selectors, page);
    expect(groupingLabelsOf(rule.expr).filter((label) => !labels.has(label))).toEqual([]);
  });

  it.each(named)('%s shows only labels that it has', (_name, rule) => {
    const shown = [...JSON.stringify(rule.annotations).matchAll(/\$labels\.(\w+)/g)];
    const labels = labelsOf(selectorsOf(rule.expr), page);
    const lists = groupingLabelsOf(rule.expr);
    const isKept = (label: string): boolean =>
      lists.length === 0 ? labels.has(label) : lists.includes(label);
    expect(shown.map(([, label = '']) => label).filter((label) => !isKept(label))).toEqual([]);
  });

  it('reads counters only through increase and rate', () => {
    const counters = page.metrics.filter(({ type }) => type !== 'gauge').map(({ name }) => name);
    const outside = RULES.filter(({ expr }) => {
      // Without strings: a pattern may contain parentheses.
      const rest = expr.replace(/"[^"]*"/g, '""').replace(/\b(increase|rate)\([^()]*\)/g, '');
      return selectorsOf(rest).some(({ name }) =>
        counters.some((counter) => name.startsWith(counter)),
      );
    });
    expect(outside.map(({ alert }) => alert)).toEqual([]);
  });
});

describe('deploy/prometheus/prometheus.yml', () => {
  const config = parse(
    fs.readFileSync(path.join(packageRoot(), 'deploy', 'prometheus', 'prometheus.yml'), 'utf8'),
  ) as { rule_files: string[]; scrape_configs: { job_name: string }[] };

  it('loads the rules, and scrapes the jobs that they select', () => {
    expect(config.rule_files).toEqual(['rules/*.yml']);
    const jobs = config.scrape_configs.map(({ job_name: name }) => name);
    const selected = RULES.flatMap(({ expr }) => [...expr.matchAll(/job="([^"]+)"/g)]).map(
      ([, job = '']) => job,
    );
    expect(selected.filter((job) => !jobs.includes(job))).toEqual([]);
  });
});
