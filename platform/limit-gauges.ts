import { Gauge, type Registry } from 'prom-client';
import { OTHER } from './label-values';

/** What a model may have in flight now. */
export interface ModelLimitSample {
  readonly model: string;
  readonly limit: number;
  /** 0 while its server may be sent to. */
  readonly pausedMs: number;
}

/** Tenants name models: more than this share a label. */
const MAX_MODELS = 200;

/** Gauges that are read from the limits when somebody asks, so that models that are gone leave. */
export interface LimitGauges {
  /** Says where the limits are; called once. */
  observe(samples: () => readonly ModelLimitSample[]): void;
}

/** Registers `model_concurrency_limit` and `model_paused`. */
export function createLimitGauges(registers: Registry[]): LimitGauges {
  let samples: () => readonly ModelLimitSample[] = () => [];
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
  return { observe: (source) => void (samples = source) };
}

/** The rest shows its worst value. */
function fill(
  gauge: Gauge<'model'>,
  samples: readonly ModelLimitSample[],
  valueOf: (sample: ModelLimitSample) => number,
  worst: (a: number, b: number) => number,
): void {
  gauge.reset();
  for (const sample of samples.slice(0, MAX_MODELS)) {
    gauge.set({ model: sample.model }, valueOf(sample));
  }
  const rest = samples.slice(MAX_MODELS).map(valueOf);
  if (rest.length > 0)
    gauge.set(
      { model: OTHER },
      rest.reduce((a, b) => worst(a, b)),
    );
}
