import type { Registry } from '../../platform/metrics';

/**
 * The values on a metrics page, by name and labels in the order of the page, without the label `process`:
 * `jobs_processed_total{result="success",reason="none"}`.
 */
export function metricValues(text: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [, name = '', labels = '', value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    const own = labels.replace(/,?process="\w+"/, '').replace(/^,/, '');
    found[own === '' ? name : `${name}{${own}}`] = Number(value);
  }
  return found;
}

/** The series of a registry that begin with `prefix` and are not 0. */
export async function movedSeries(
  registry: Pick<Registry, 'metrics'>,
  prefix = '',
): Promise<Record<string, number>> {
  const all = Object.entries(metricValues(await registry.metrics()));
  return Object.fromEntries(all.filter(([name, value]) => value !== 0 && name.startsWith(prefix)));
}
