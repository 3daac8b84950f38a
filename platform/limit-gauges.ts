import { Gauge, type Registry } from 'prom-client';
import type { LabelValues } from './label-values';

/** The current limit of one model. */
export interface ModelLimitSample {
  readonly model: string;
  readonly limit: number;
  /** Remaining time of the server's `Retry-After`, ms; 0 outside a pause. */
  readonly pausedMs: number;
}

/** Gauges that are filled when they are read, so that forgotten models disappear. */
export interface LimitGauges {
  /** Sets the source of the values; called once. */
  observe(samples: () => readonly ModelLimitSample[]): void;
}

/** Registers `model_concurrency_limit` and `model_paused`, with the model labels of the request metrics. */
export function createLimitGauges(
  registers: Registry[],
  labels: Pick<LabelValues, 'peek'>,
): LimitGauges {
  let observed: () => readonly ModelLimitSample[] = () => [];
  const samples = (): ModelLimitSample[] =>
    observed().map((sample) => ({ ...sample, model: labels.peek(sample.model) }));
  const limit: Gauge<'model'> = new Gauge({
    name: 'model_concurrency_limit',
    help: 'Requests of a model that may be in flight now, as learned from its server',
    labelNames: ['model'] as const,
    registers,
    collect: () => fill(limit, samples(), (sample) => sample.limit, Math.min),
  });
  const paused: Gauge<'model'> = new Gauge({
    name: 'model_paused',
    help: '1 while a model server has asked for a pause (Retry-After)',
    labelNames: ['model'] as const,
    registers,
    collect: () => fill(paused, samples(), ({ pausedMs }) => Number(pausedMs > 0), Math.max),
  });
  return { observe: (source) => void (observed = source) };
}

/** Sets the gauge for each label; models that share a label show their worst value. */
function fill(
  gauge: Gauge<'model'>,
  samples: readonly ModelLimitSample[],
  valueOf: (sample: ModelLimitSample) => number,
  worst: (a: number, b: number) => number,
): void {
  const byLabel = new Map<string, number>();
  for (const sample of samples) {
    const value = valueOf(sample);
    byLabel.set(sample.model, worst(value, byLabel.get(sample.model) ?? value));
  }
  gauge.reset();
  for (const [model, value] of byLabel) gauge.set({ model }, value);
}
