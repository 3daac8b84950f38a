import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ruleFiles } from './alert-rules';
import type { Recording } from './recording';

/** What must hold at a moment of a test: the alerts that fire, and no other. */
export interface Expectation {
  readonly atMin: number;
  readonly firing: readonly string[];
}

/** Series that begin at minute 0, one sample a minute, and what they make of the rules. */
export interface RuleTest {
  readonly name: string;
  readonly series: Recording['series'];
  readonly expected: readonly Expectation[];
}

/** Runs promtool; returns its output. An exit code is an error with that output. */
export function promtool(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`promtool ${args.slice(0, 2).join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

/** Evaluates the rules that are shipped on `tests`. Throws promtool's differences. */
export function testRules(program: string, tests: readonly RuleTest[]): void {
  const file = {
    rule_files: ruleFiles(),
    evaluation_interval: '1m',
    tests: tests.map(({ name, series, expected }) => ({
      name,
      interval: '1m',
      input_series: Object.entries(series).map(([key, values]) => ({ series: key, values })),
      promql_expr_test: expected.map(({ atMin, firing }) => ({
        expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: `${atMin}m`,
        exp_samples: firing.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
      })),
    })),
  };
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-promtool-'));
  try {
    const target = path.join(folder, 'test.yml');
    fs.writeFileSync(target, JSON.stringify(file));
    promtool(program, ['test', 'rules', target]);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}
