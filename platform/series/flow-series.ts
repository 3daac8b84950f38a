import type { Registry } from 'prom-client';
import { FAULT_CODES } from '../../core/dispatch/drop-codes';
import { BAND_NAMES } from '../../core/dispatch/queue/band';
import { createLabelValues } from '../label-values';
import { BandMeter, type FlowMeters, ModelMeter, PUSH_ERRORS, SECONDS, TURNS } from './flow-meters';
import { type ObservedSeries, readHistogram } from './read-histogram';
import { readCounter, readGauge, type Reading } from './read-series';

/** Limits on the series of models and tenants, which clients choose. */
export interface FlowSeriesLimits {
  readonly maxModels?: number;
  readonly maxTenants?: number;
  /** Models in the configuration; each always has a series of its own. */
  readonly models?: readonly string[];
  readonly idleMs?: number;
  readonly nowMs?: () => number;
}

const MAX_MODELS = 200;
const MAX_TENANTS = 1_000;
const IDLE_MS = 3_600_000;

/** Registers the series of requests in the queue and in flight, and returns the meters that they are read from. */
export function createFlowSeries(
  registers: Registry[],
  limits: FlowSeriesLimits = {},
): { readonly flow: FlowMeters } {
  const ofModels = modelMeters(registers, limits);
  const addTokens = tokenMeter(registers, limits);
  return { flow: { ...ofModels, addTokens, bands: bandMeters(registers) } };
}

/** `targetModel` is always `model`, because bodies are never changed. */
const MODEL_LABELS = ['model', 'targetModel'] as const;

function modelMeters(registers: Registry[], limits: FlowSeriesLimits) {
  const meters = new Map<string, ModelMeter>();
  const labels = createLabelValues({
    ...bounds(limits, limits.maxModels ?? MAX_MODELS),
    reserved: limits.models ?? [],
    onGone: (model) => void meters.delete(model),
  });
  const meterOf = (model: string): ModelMeter => {
    const meter = meters.get(model) ?? new ModelMeter();
    meters.set(model, meter);
    return meter;
  };
  registerModels(registers, () => {
    labels.sweep();
    return meters;
  });
  return {
    enterModel: (model: string) => meterOf(labels.hold(model)),
    leaveModel: (model: string) => void labels.release(model),
  };
}

function registerModels(
  registers: Registry[],
  meters: () => ReadonlyMap<string, ModelMeter>,
): void {
  const read = (valueOf: (meter: ModelMeter) => number) => (): Reading[] =>
    [...meters()].map(([model, meter]) => [{ model, targetModel: model }, valueOf(meter)]);
  const gauge = (name: string, help: string, valueOf: (meter: ModelMeter) => number) =>
    readGauge(registers, { name, help, labelNames: MODEL_LABELS }, read(valueOf));
  const counter = (name: string, help: string, valueOf: (meter: ModelMeter) => number) =>
    readCounter(registers, { name, help, labelNames: MODEL_LABELS }, read(valueOf));
  gauge('queue_length', 'Requests that wait', ({ queued }) => queued);
  gauge('stock_level', 'Requests in flight at backends', ({ inFlight }) => inFlight);
  counter('bypass_rate', 'Requests that were dispatched on arrival', ({ bypassed }) => bypassed);
  counter('requests_expired', 'Requests that waited for too long', ({ expired }) => expired);
  counter('requests_cancelled', 'Requests whose client hung up', ({ cancelled }) => cancelled);
  const refused = {
    name: 'queue_push_errors',
    help: 'Requests that were refused on arrival, by error',
    labelNames: [...MODEL_LABELS, 'error_type'],
  };
  registerQueueTimes(registers, meters);
  readCounter(registers, refused, () =>
    [...meters()].flatMap(([model, meter]) =>
      PUSH_ERRORS.map((error): Reading => {
        return [{ model, targetModel: model, error_type: error }, meter.refused[error]];
      }),
    ),
  );
}

/** A model has a series of successes from its first one on, and the same for others. */
function registerQueueTimes(
  registers: Registry[],
  meters: () => ReadonlyMap<string, ModelMeter>,
): void {
  const series = {
    name: 'queue_latency_seconds',
    help: 'Time from the arrival of a request to its dispatch, or to its drop',
    labelNames: [...MODEL_LABELS, 'success'],
    buckets: SECONDS,
  };
  readHistogram(registers, series, () =>
    [...meters()].flatMap(([model, { queueTime }]) => {
      const own = { model, targetModel: model };
      const both: ObservedSeries[] = [
        [{ ...own, success: 'true' }, queueTime.ofSuccesses],
        [{ ...own, success: 'false' }, queueTime.ofOthers],
      ];
      return both.filter(([, { count }]) => count > 0);
    }),
  );
}

/** Every value is shown from the start, so that `increase()` sees the first event of a kind. */
function bandMeters(registers: Registry[]): FlowMeters['bands'] {
  const bands = [new BandMeter(), new BandMeter(), new BandMeter()] as const;
  const ttfb = {
    name: 'gateway_ttfb_seconds',
    help: 'Time from the dispatch to the first byte of the answer',
    labelNames: ['band'],
    buckets: SECONDS,
  };
  readHistogram(registers, ttfb, () =>
    bands.map((meter, at): ObservedSeries => [{ band: BAND_NAMES[at] ?? '' }, meter.ttfb]),
  );
  const read = (readingsOf: (meter: BandMeter) => Reading[]) => () =>
    bands.flatMap((meter, at) =>
      readingsOf(meter).map(([labels, value]): Reading => {
        return [{ band: BAND_NAMES[at] ?? '', ...labels }, value];
      }),
    );
  const dispatched = {
    name: 'gateway_dispatched_total',
    help: 'Requests sent to backends, by band and by what made it their turn',
    labelNames: ['band', 'by'],
  };
  readCounter(
    registers,
    dispatched,
    read((meter) => TURNS.map((by) => [{ by }, meter.dispatched[by]])),
  );
  const dropped = {
    name: 'gateway_dropped_total',
    help: 'Requests that got no answer of a backend, by band and code',
    labelNames: ['band', 'code'],
  };
  readCounter(
    registers,
    dropped,
    read((meter) => FAULT_CODES.map((code) => [{ code }, meter.dropped[code]])),
  );
  const preempted = {
    name: 'gateway_preempted_total',
    help: 'Requests that gave their place to a request of a higher band',
    labelNames: ['band'],
  };
  readCounter(
    registers,
    preempted,
    read((meter) => [[{}, meter.dropped.evicted]]),
  );
  const cut = {
    name: 'gateway_answers_cut_total',
    help: 'Answers of backends that broke off after they had begun',
    labelNames: ['band'],
  };
  readCounter(
    registers,
    cut,
    read((meter) => [[{}, meter.cut]]),
  );
  return bands;
}

function tokenMeter(registers: Registry[], limits: FlowSeriesLimits): FlowMeters['addTokens'] {
  const tokens = new Map<string, [critical: number, standard: number, sheddable: number]>();
  const tenants = createLabelValues({
    ...bounds(limits, limits.maxTenants ?? MAX_TENANTS),
    onGone: (tenant) => void tokens.delete(tenant),
  });
  const served = {
    name: 'gateway_service_tokens_total',
    help: 'Cost of ended requests: input tokens and twice the output tokens',
    labelNames: ['band', 'tenant'],
  };
  readCounter(registers, served, () => {
    tenants.sweep();
    return [...tokens].flatMap(([tenant, ofBands]) =>
      BAND_NAMES.map((band, at): Reading => [{ band, tenant }, ofBands[at] ?? 0]),
    );
  });
  return (band, tenant, count) => {
    const label = tenants.of(tenant);
    const ofBands = tokens.get(label) ?? [0, 0, 0];
    ofBands[band] += count;
    tokens.set(label, ofBands);
  };
}

function bounds({ idleMs = IDLE_MS, nowMs }: FlowSeriesLimits, max: number) {
  return { max, idleMs, nowMs: nowMs ?? (() => performance.now()) };
}
