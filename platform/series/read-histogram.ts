import { Histogram, type Registry } from 'prom-client';
import type { SeriesName } from './read-series';

/**
 * The observations of one series of a histogram. They are plain fields, because `observe` of the library looks the
 * series up by its labels each time: three of those cost a request of the gateway as much as its way through the queue.
 */
export class Observations {
  /** Observations per bound that do not exceed it, but the one before. */
  readonly counts: number[];
  sum = 0;
  count = 0;
  readonly #bounds: readonly number[];

  /** @param bounds upper bounds of the buckets, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.sum += value;
    this.count++;
    const bounds = this.#bounds;
    for (let i = 0; i < bounds.length; i++) {
      if (value > (bounds[i] ?? 0)) continue;
      this.counts[i] = (this.counts[i] ?? 0) + 1;
      return;
    }
  }
}

/** The observations of one series, with its labels. */
export type ObservedSeries = readonly [
  labels: Readonly<Record<string, string>>,
  observed: Observations,
];

/** A name, and the upper bounds of the buckets, ascending. */
export interface HistogramName extends SeriesName {
  readonly buckets: readonly number[];
}

/** Registers a histogram whose observations are kept elsewhere and read at each scrape. */
export function readHistogram(
  registers: Registry[],
  series: HistogramName,
  read: () => ObservedSeries[],
): void {
  new ReadHistogram(registers, series, read);
}

/** One line of the exposition. The library prints `sharedLabels` behind `labels` and those of the registry. */
interface Line {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly sharedLabels: Readonly<Record<string, string>>;
  readonly value: number;
}

class ReadHistogram extends Histogram {
  readonly #series: HistogramName;
  readonly #read: () => ObservedSeries[];

  constructor(registers: Registry[], series: HistogramName, read: () => ObservedSeries[]) {
    const { name, help, labelNames = [], buckets } = series;
    super({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers });
    this.#series = series;
    this.#read = read;
  }

  override async get() {
    const values = this.#lines().map(({ labels, sharedLabels, ...line }) => {
      return { ...line, labels: { ...labels, ...sharedLabels } };
    });
    return { ...(await super.get()), values };
  }

  /** What the registry asks for a scrape, instead of `get`. */
  async getForPromString() {
    const { name, help } = this.#series;
    return { name, help, type: 'histogram', values: this.#lines() };
  }

  #lines(): Line[] {
    return this.#read().flatMap(([labels, observed]) => this.#linesOf(labels, observed));
  }

  #linesOf(sharedLabels: Line['sharedLabels'], { counts, count, sum }: Observations): Line[] {
    const { name, buckets } = this.#series;
    let below = 0;
    const bucket = (le: string | number, value: number): Line => {
      return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value };
    };
    return [
      ...buckets.map((bound, i) => bucket(bound, (below += counts[i] ?? 0))),
      bucket('+Inf', count),
      { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
      { metricName: `${name}_count`, labels: {}, sharedLabels, value: count },
    ];
  }
}
