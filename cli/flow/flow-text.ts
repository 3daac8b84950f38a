import type {
  DispatchReason,
  FlowPage,
  FlowPageBackend,
  FlowPageBand,
  FlowPageFlow,
  FlowPagePool,
} from '../../platform/flow-page';
import { humanBytes, humanDuration, humanRate, shortened } from '../batches/human-format';
import type { Color } from '../batches/paint';
import { grouped } from '../output';
import { fittedTable, type Column, type TableStyle } from './fitted-table';

/** By what flows are sorted. */
export const SORTS = ['waiting', 'in flight', 'oldest', 'tokens/min'] as const;
/** One of {@link SORTS}. */
export type Sort = (typeof SORTS)[number];

/** A page, and what it is compared with. */
export interface FlowText extends TableStyle {
  readonly page: FlowPage;
  /** An earlier page and how long ago it was read, for rates; null if there is none. */
  readonly before: { readonly page: FlowPage; readonly ageMs: number } | null;
  readonly sort: Sort;
}

/** The lines that show a page: for each pool its bands, backends and flows. */
export function flowLines(text: FlowText): string[] {
  const { page } = text;
  if (page.pools.length === 0) return ['The gateway has no pools.'];
  return page.pools.flatMap((pool, i) => [...(i === 0 ? [] : ['']), ...poolLines(pool, text)]);
}

function poolLines(pool: FlowPagePool, text: FlowText): string[] {
  const { width, paint } = text;
  const blocks = [
    fittedTable(bandRows(pool, text), BAND_COLUMNS, text),
    fittedTable(pool.backends, BACKEND_COLUMNS, text),
    ...(pool.flows.length === 0 ? [] : [fittedTable(sorted(pool, text.sort), FLOW_COLUMNS, text)]),
  ];
  const facts = poolFacts(pool);
  const title = shortened(`${pool.name} (${pool.models.join(', ')})`, Math.min(width, 60));
  const rest = facts.join(', ');
  const isOneLine = title.length + 2 + rest.length <= width;
  const head = isOneLine
    ? [`${paint('bold', title)}  ${rest}`]
    : [paint('bold', title), ...facts.map((fact) => shortened(fact, width))];
  return [...head, ...blocks.flatMap((lines) => ['', ...lines])];
}

function poolFacts({ stock, bounds, saturation, sheddable_cap: cap, ...pool }: FlowPagePool) {
  const waiting = Object.values(pool.bands).reduce((sum, { queued }) => sum + queued, 0);
  return [
    `in flight ${stock.requests} of ${fullAt(bounds)} (${bounds.mode}, ${percent(saturation)})`,
    `waiting ${grouped(waiting)} (${tokens(pool.queued_cost)} tokens, ${humanBytes(pool.queued_bytes)})`,
    ...(cap === null ? [] : [`batches up to ${cap}`]),
  ];
}

/** Requests in flight with which the pool is full. */
function fullAt({ mode, watermark, upper }: FlowPagePool['bounds']): number {
  return Math.round((mode === 'learnt' ? watermark : upper) * 10) / 10;
}

interface BandRow extends FlowPageBand {
  readonly name: string;
  /** Dispatches per second; null if that is not known. */
  readonly perSec: number | null;
}

function bandRows(pool: FlowPagePool, { before }: FlowText): BandRow[] {
  const earlier = before?.page.pools.find(({ name }) => name === pool.name) ?? null;
  return (['critical', 'standard', 'sheddable'] as const).map((name) => {
    const band = pool.bands[name];
    const past = earlier?.bands[name] ?? null;
    const sent = past === null ? -1 : total(band) - total(past);
    // A gateway that was restarted counts from 0 again.
    const isKnown = before !== null && before.ageMs > 0 && sent >= 0;
    return { ...band, name, perSec: isKnown ? sent / (before.ageMs / 1_000) : null };
  });
}

function total({ dispatched }: FlowPageBand): number {
  return Object.values(dispatched).reduce((sum, count) => sum + count, 0);
}

const dispatchedBy = (title: string, reason: DispatchReason): Column<BandRow> => ({
  title,
  cell: ({ dispatched }) => grouped(dispatched[reason]),
});

const BAND_COLUMNS: readonly Column<BandRow>[] = [
  { title: 'band', kind: 'word', cell: ({ name }) => name },
  { title: 'waiting', cell: ({ queued }) => emphasized(queued) },
  { title: 'oldest', cell: ({ oldest_ms: ms }) => durationOf(ms) },
  { title: 'in flight', cell: ({ in_flight: count }) => grouped(count) },
  { title: 'share', cell: ({ share }) => percent(share) },
  { title: 'sent/s', cell: ({ perSec }) => (perSec === null ? '-' : humanRate(perSec)) },
  dispatchedBy('on arrival', 'bypass'),
  dispatchedBy('by turn', 'queue'),
  dispatchedBy('by floor', 'floor'),
  dispatchedBy('urgent', 'promoted'),
];

const STATE_COLORS: Readonly<Record<FlowPageBackend['state'], Color>> = {
  ready: 'green',
  busy: 'yellow',
  paused: 'yellow',
  not_ready: 'red',
};

const BACKEND_COLUMNS: readonly Column<FlowPageBackend>[] = [
  { title: 'backend', kind: 'name', cell: ({ url }) => url.replace(/^http:\/\//, '') },
  {
    title: 'state',
    kind: 'word',
    cell: ({ state }) => [STATE_COLORS[state], state.replace('_', ' ')],
  },
  { title: 'in flight', cell: (backend) => grouped(backend.in_flight) },
  { title: 'limit', cell: ({ limit }) => grouped(limit) },
  { title: 'TTFB', cell: ({ ttfb_ms: ms }) => milliseconds(ms) },
  { title: 'base', cell: ({ ttfb_base_ms: ms }) => milliseconds(ms) },
  { title: 'reason', kind: 'note', cell: ({ reason }) => reason ?? '' },
];

const FLOW_COLUMNS: readonly Column<FlowPageFlow>[] = [
  { title: 'tenant', kind: 'name', cell: ({ tenant }) => tenant },
  { title: 'model', kind: 'name', cell: ({ model }) => model },
  { title: 'waiting', cell: ({ queued }) => emphasized(queued) },
  { title: 'in flight', cell: (flow) => grouped(flow.in_flight) },
  { title: 'oldest', cell: ({ oldest_ms: ms }) => durationOf(ms) },
  { title: 'tokens/min', cell: (flow) => tokens(flow.tokens_60s) },
  { title: 'band', kind: 'word', cell: ({ band }) => band },
  { title: 'weight', cell: ({ weight }) => String(weight) },
];

const KEYS: Readonly<Record<Sort, (flow: FlowPageFlow) => number>> = {
  waiting: ({ queued }) => queued,
  'in flight': (flow) => flow.in_flight,
  oldest: ({ oldest_ms: ms }) => ms ?? -1,
  'tokens/min': (flow) => flow.tokens_60s,
};

function sorted({ flows }: FlowPagePool, sort: Sort): FlowPageFlow[] {
  return [...flows].sort((a, b) => KEYS[sort](b) - KEYS[sort](a));
}

function emphasized(count: number): string | readonly [Color, string] {
  return count === 0 ? '0' : ['yellow', grouped(count)];
}

function durationOf(ms: number | null): string {
  return ms === null ? '-' : humanDuration(ms);
}

function milliseconds(ms: number | null): string {
  return ms === null ? '-' : `${grouped(ms)} ms`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** `812`, `12.3k`, `1.4M`. */
function tokens(count: number): string {
  if (count < 10_000) return grouped(count);
  return count < 999_950 ? `${(count / 1e3).toFixed(1)}k` : `${(count / 1e6).toFixed(1)}M`;
}
