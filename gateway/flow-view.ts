import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BandStats } from '../core/dispatch/pool/pool-stats';
import type { FlowStats, FlowSurvey } from '../core/dispatch/pool/flow-survey';
import { BAND, BAND_NAMES } from '../core/dispatch/queue/band';
import { redactUrl } from '../platform/config-redact';
import type {
  FlowPage,
  FlowPageBackend,
  FlowPageBand,
  FlowPageFlow,
  FlowPagePool,
} from '../platform/flow-page';
import type { PoolSample } from '../platform/series/pool-series';
import type { GatewayPool } from './pools/gateway-pool';
import type { PoolBackend } from './pools/pool-backend';
import type { BodyRoom } from './requests/body-room';

/** Flows of a pool that the page shows. */
const LONGEST = 200;
/** Flows that are looked at before other work of the process has its turn: well below 1 ms. */
const FLOWS_PER_TURN = 2_000;

/** What `GET /admin/flow` shows of the gateway and all pools (docs/design/gateway.md#what-operators-see). */
export async function flowView(
  pools: readonly GatewayPool[],
  bodyRoom: Pick<BodyRoom, 'bytes'>,
  nowMs: number,
): Promise<FlowPage> {
  const views: FlowPagePool[] = [];
  for (const pool of pools) {
    const survey = pool.controller.survey(LONGEST);
    await complete(survey);
    views.push(poolView(pool, survey, nowMs));
  }
  return { receiving_bytes: bodyRoom.bytes, pools: views };
}

/** What the metrics show of a pool. */
export function poolSample(pool: GatewayPool, nowMs: number): PoolSample {
  const stats = pool.controller.stats();
  const [critical, standard, sheddable] = stats.queued;
  return {
    ...stats,
    pool: pool.name,
    queued: { critical, standard, sheddable },
    sheddableCap: pool.sheddableCap,
    slowdown: pool.guard.slowdown(nowMs),
    backends: pool.backends.map((backend) => ({
      backend: redactUrl(backend.id),
      isReady: backend.isReady,
      limit: backend.limit.limit,
      inFlight: backend.inFlight,
    })),
  };
}

async function complete(survey: FlowSurvey): Promise<void> {
  const steps = survey.steps();
  for (let looked = 1; !steps.next().done; looked++) {
    if (looked % FLOWS_PER_TURN === 0) await nextTurn();
  }
}

function poolView(pool: GatewayPool, survey: FlowSurvey, nowMs: number): FlowPagePool {
  const stats = pool.controller.stats();
  const { longest, oldestMs } = survey.result;
  const [critical, standard, sheddable] = stats.bands;
  const { lower, watermark, upper } = stats;
  return {
    name: pool.name,
    models: pool.models,
    stock: { requests: stats.stock, cost: Math.round(stats.stockCost) },
    bounds: { mode: pool.isStatic ? 'fixed' : 'learnt', lower, watermark, upper },
    limits: {
      request_timeout_ms: pool.limits.requestTimeoutMs,
      batch_queue_ttl_ms: pool.queueLimits.batchQueueTtlMs,
      sheddable_capacity: pool.queueLimits.sheddableCapacity,
    },
    saturation: stats.saturation,
    queued_cost: Math.round(stats.queuedCost),
    queued_bytes: stats.queuedBytes,
    active_flows: stats.activeFlows,
    sheddable_cap: Number.isFinite(pool.sheddableCap) ? Math.floor(pool.sheddableCap) : null,
    bands: {
      critical: bandView(critical, oldestMs[BAND.critical]),
      standard: bandView(standard, oldestMs[BAND.standard]),
      sheddable: bandView(sheddable, oldestMs[BAND.sheddable]),
    },
    backends: pool.backends.map((backend) => backendView(backend, nowMs)),
    ttfb: pool.guard
      .report(nowMs)
      .filter(({ recentMs, baseMs }) => recentMs !== null || baseMs !== null)
      .map(({ maxPromptTokens, recentMs, baseMs }) => ({
        max_prompt_tokens: maxPromptTokens,
        now_ms: rounded(recentMs),
        base_ms: rounded(baseMs),
      })),
    flows: longest.map(flowRow),
  };
}

function bandView(stats: BandStats, oldestMs: number | null): FlowPageBand {
  const { queued, inFlight, share, dispatched } = stats;
  return { queued, in_flight: inFlight, oldest_ms: rounded(oldestMs), share, dispatched };
}

function backendView(backend: PoolBackend, nowMs: number): FlowPageBackend {
  const { recentMs, baseMs } = backend.ttfb.report(nowMs);
  return {
    url: redactUrl(backend.id),
    ...backend.condition,
    limit: Math.floor(backend.limit.limit),
    in_flight: backend.inFlight,
    cost: Math.round(backend.cost),
    ttfb_ms: rounded(recentMs),
    ttfb_base_ms: rounded(baseMs),
  };
}

function flowRow(flow: FlowStats): FlowPageFlow {
  const { tenant, model, weight, queued, inFlight, oldestMs, recentTokens } = flow;
  return {
    band: BAND_NAMES[flow.band],
    ...{ tenant, model, weight, queued },
    in_flight: inFlight,
    oldest_ms: rounded(oldestMs),
    tokens_60s: recentTokens,
  };
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}
