import { Counter, Gauge, type Registry } from 'prom-client';

/** One value of a series, with its labels. */
export type Reading = readonly [labels: Readonly<Record<string, string>>, value: number];

/** What a series is called. */
export interface SeriesName {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

/** Registers a gauge that is read at each scrape. Readings with equal labels are added up. */
export function readGauge(registers: Registry[], series: SeriesName, read: () => Reading[]): void {
  register(Gauge, registers, { series, read });
}

/** Registers a counter that is counted elsewhere and read at each scrape. */
export function readCounter(
  registers: Registry[],
  series: SeriesName,
  read: () => Reading[],
): void {
  register(Counter, registers, { series, read });
}

function register(
  Metric: typeof Counter | typeof Gauge,
  registers: Registry[],
  { series, read }: { readonly series: SeriesName; readonly read: () => Reading[] },
): void {
  const { name, help, labelNames = [] } = series;
  const metric: Counter | Gauge = new Metric({
    ...{ name, help, labelNames: [...labelNames], registers },
    collect: () => {
      metric.reset();
      for (const [labels, value] of read()) metric.inc(labels, value);
    },
  });
}
