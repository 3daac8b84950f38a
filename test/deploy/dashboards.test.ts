import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { packageRoot } from '../../platform/package-root';
import { labelsOf, metricsPage, unknownIn } from './metrics-page';
import { groupingLabelsOf, selectorsOf } from './promql-names';
import { dashboards, type Panel } from './grafana-dashboards';

const page = metricsPage();
const DASHBOARDS = dashboards();
const PANELS = DASHBOARDS.flatMap(({ file, panels }) =>
  panels.map((panel) => [`${file}: ${panel.title}`, panel] as const),
);
/** Units of Grafana that the dashboards use. */
const UNITS = ['none', 'percentunit', 's', 'bytes', 'reqps', 'ops'];

describe('the dashboards that are shipped', () => {
  it('show API, audio, batches, gateway, workers, stores and Temporal', () => {
    const files = DASHBOARDS.map(({ file }) => file);
    expect(files.sort()).toEqual(
      ['api', 'audio', 'batches', 'gateway', 'stores', 'temporal', 'workers'].map(
        (name) => `${name}.json`,
      ),
    );
    expect(new Set(DASHBOARDS.map(({ uid }) => uid)).size).toBe(DASHBOARDS.length);
  });

  it.each(PANELS)('%s has a title, a description and a unit', (_name, panel) => {
    expect(panel.title).toMatch(/^[A-Z]/);
    expect(panel.description).toMatch(/^["A-Z\d].{20,}\.$/);
    expect(UNITS).toContain(panel.fieldConfig.defaults.unit);
    expect(panel.datasource).toEqual({ type: 'prometheus', uid: '${datasource}' });
  });

  it.each(PANELS)('%s uses series, labels and values that docs/metrics.md has', (_name, panel) => {
    expect(panel.targets.length).toBeGreaterThan(0);
    for (const { expr, legendFormat } of panel.targets) {
      const selectors = selectorsOf(expr);
      expect(selectors.length).toBeGreaterThan(0);
      expect(selectors.flatMap((selector) => unknownIn(selector, page))).toEqual([]);
      const labels = labelsOf(selectors, page);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
      const used = [...groupingLabelsOf(expr), ...shown];
      expect(used.filter((label) => !labels.has(label))).toEqual([]);
    }
  });

  it.each(PANELS)('%s adds up or separates the processes of the installation', (_name, panel) => {
    for (const { expr } of panel.targets) {
      const isAggregated = /\b(sum|min|max|count)\b/.test(expr);
      expect(isAggregated || panel.targets.every(isByInstance)).toBe(true);
    }
  });

  it.each(DASHBOARDS.map((dashboard) => [dashboard.file, dashboard.panels] as const))(
    '%s gives each panel a place of its own',
    (_file, panels) => {
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
        expect(x + w).toBeLessThanOrEqual(24);
        return Array.from(
          { length: w * h },
          (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`,
        );
      });
      expect(new Set(cells).size).toBe(cells.length);
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    },
  );

  it('show gauges that every API process exports once', () => {
    const shared = [
      'batches_open',
      'batches_overdue',
      'batch_oldest_seconds',
      'batch_waiting_lines',
    ];
    const summed = PANELS.flatMap(([name, { targets }]) =>
      targets
        .filter(({ expr }) => selectorsOf(expr).some((selector) => shared.includes(selector.name)))
        .filter(({ expr }) => !/\bmax\b/.test(expr))
        .map(() => name),
    );
    expect(summed).toEqual([]);
  });
});

describe('the provisioning of Grafana', () => {
  const read = (...names: string[]): unknown =>
    parse(fs.readFileSync(path.join(packageRoot(), 'deploy', 'grafana', ...names), 'utf8'));

  it('names the data source and the folder of the dashboards', () => {
    expect(read('provisioning', 'datasources', 'nightshift.yml')).toMatchObject({
      datasources: [{ type: 'prometheus', url: 'http://prometheus:9090' }],
    });
    expect(read('provisioning', 'dashboards', 'nightshift.yml')).toMatchObject({
      providers: [{ type: 'file', options: { path: '/etc/grafana/dashboards' } }],
    });
  });
});

function isByInstance({ legendFormat }: Panel['targets'][number]): boolean {
  return legendFormat.includes('{{instance}}');
}
