import { Gauge, type Registry } from 'prom-client';
import type { LabelValues } from './label-values';

/** What a model may have in flight now. */
export interface ModelLimitSample {
  readonly model: string;
  readonly limit: number;
  /** 0 while its server may be sent to. */
  readonly pausedMs: number;
}

/** Gauges that are read from the limits when somebody asks, so that models that are gone leave. */
export interface LimitGauges {
  /** Says where the limits are; called once. */
  observe(samples: () => readonly ModelLimitSample[]): void;
}

/** Registers `model_concurrency_limit` and `model_paused`; models have the labels of their requests. */
export function createLimitGauges(
  registers: Registry[],
  labels: Pick<LabelValues, 'peek'>,
): LimitGauges {
  let observed: () => readonly ModelLimitSample[] = () => [];
  const samples = (): ModelLimitSample[] =>
    observed().map((sample) => ({ ...sample, model: labels.peek(sample.model) }));
  const limit: Gauge<'model'> = new Gauge({
    name: 'model_concurrency_limit',
    help: 'Requests of a model that may be in flight now, as learnt from its server',
    labelNames: ['model'] as const,
    registers,
    collect: () => fill(limit, samples(), (sample) => sample.limit, Math.min),
  });
  const paused: Gauge<'model'> = new Gauge({
    name: 'model_paused',
    help: '1 while a model server has asked to be left alone (Retry-After)',
    labelNames: ['model'] as const,
    registers,
    collect: () => fill(paused, samples(), ({ pausedMs }) => Number(pausedMs > 0), Math.max),
  });
  return { observe: (source) => void (observed = source) };
}

/** Models that share a label show their worst value. */
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
