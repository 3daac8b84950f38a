import fs from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../platform/package-root';

/** The parts of a Grafana panel that tests look at. */
export interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description: string;
  readonly datasource: unknown;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** A dashboard file. */
export interface Dashboard {
  readonly file: string;
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** The dashboards that are shipped. */
export function dashboards(): Dashboard[] {
  const folder = path.join(packageRoot(), 'deploy', 'grafana', 'dashboards');
  return fs.readdirSync(folder).map((file) => {
    const text = fs.readFileSync(path.join(folder, file), 'utf8');
    return { ...(JSON.parse(text) as Omit<Dashboard, 'file'>), file };
  });
}

/** The expressions of all panels, with values in place of Grafana's variables. */
export function panelExpressions(): string[] {
  return dashboards().flatMap(({ panels }) =>
    panels.flatMap(({ targets }) =>
      targets.map(({ expr }) =>
        expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'),
      ),
    ),
  );
}
