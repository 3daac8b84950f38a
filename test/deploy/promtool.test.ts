import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWithGoTool, findGoTool, GO_TOOL_MS } from '../support/go-tool';
import { alertRules, ruleFiles } from './alert-rules';
import { panelExpressions } from './grafana-dashboards';
import { promtool } from './promtool';

describeWithGoTool('promtool', 'promtool', () => {
  let program = '';
  beforeAll(async () => {
    program = (await findGoTool('promtool')) ?? '';
  }, GO_TOOL_MS);

  it('accepts the configuration of Prometheus and every alert rule', () => {
    const config = path.join(path.dirname(path.dirname(ruleFiles()[0] ?? '')), 'prometheus.yml');
    expect(promtool(program, ['check', 'config', config])).toContain('is valid');
    const output = promtool(program, ['check', 'rules', ...ruleFiles()]);
    const found = [...output.matchAll(/(\d+) rules? found/g)].map(([, count]) => Number(count));
    expect(found.reduce((sum, count) => sum + count, 0)).toBe(alertRules().length);
  });

  it('accepts the expression of every panel', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'nightshift-panels-'));
    try {
      const rules = panelExpressions().map((expr, at) => ({ record: `panel:${at}`, expr }));
      const file = path.join(folder, 'panels.yml');
      writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }));
      expect(promtool(program, ['check', 'rules', file])).toContain(`${rules.length} rules found`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
