import { flowLines, type FlowText } from '../../../cli/flow/flow-text';
import type { FlowPagePool } from '../../../platform/flow-page';
import { backend, band, flow, page, pool } from './flow-pages';

const BUSY = pool({
  bands: {
    critical: band({ in_flight: 2, share: 0.25, dispatched: sent({ bypass: 1_200 }) }),
    standard: band({ queued: 3, oldest_ms: 1_250, in_flight: 4, share: 0.7 }),
    sheddable: band({ queued: 22, oldest_ms: 61_000, dispatched: sent({ floor: 2, promoted: 5 }) }),
  },
  backends: [
    backend({ in_flight: 6, ttfb_ms: 120, ttfb_base_ms: 90 }),
    backend({
      ...{ url: 'http://vllm-1:8000', state: 'not_ready', limit: 16 },
      reason: 'the connection was refused',
    }),
  ],
  flows: [
    flow({ tenant: 'acme', band: 'sheddable', queued: 22, weight: 3, tokens_60s: 15_300 }),
    flow({ tenant: 'beta', queued: 3, in_flight: 4, oldest_ms: 1_250, tokens_60s: 999 }),
  ],
});

function sent(counts: object) {
  return { bypass: 0, queue: 0, floor: 0, promoted: 0, ...counts };
}

function lines(pools: readonly FlowPagePool[], changes: Partial<FlowText> = {}): string[] {
  const style = { width: 120, paint: (_color: string, text: string) => text };
  return flowLines({ ...style, page: page(...pools), before: null, sort: 'waiting', ...changes });
}

it('shows the bands, backends and flows of a pool', () => {
  expect(lines([BUSY])).toEqual([
    'main (*)  in flight 6 of 8 (learnt, 75 %), waiting 25 (12.3k tokens, 1.4 MB), batches up to 7',
    '',
    'band       waiting      oldest  in flight  share  sent/s  on arrival  by turn  by floor  urgent',
    'critical         0           -          2   25 %       -       1,200        0         0       0',
    'standard         3       1.3 s          4   70 %       -           0        0         0       0',
    'sheddable       22  1 min 01 s          0    0 %       -           0        0         2       5',
    '',
    'backend      state      in flight  limit    TTFB   base  reason',
    'vllm-0:8000  ready              6      8  120 ms  90 ms',
    'vllm-1:8000  not ready          0     16       -      -  the connection was refused',
    '',
    'tenant  model  waiting  in flight  oldest  tokens/min  band       weight',
    'acme    llama       22          0       -       15.3k  sheddable       3',
    'beta    llama        3          4   1.3 s         999  standard        1',
  ]);
});

it('sorts flows', () => {
  const tenants = (sort: FlowText['sort']) =>
    lines([BUSY], { sort })
      .slice(-2)
      .map((line) => line.slice(0, 4));
  expect(tenants('waiting')).toEqual(['acme', 'beta']);
  expect(tenants('in flight')).toEqual(['beta', 'acme']);
  expect(tenants('oldest')).toEqual(['beta', 'acme']);
  expect(tenants('tokens/min')).toEqual(['acme', 'beta']);
});

it('shows how many requests a band sends per second, and nothing after a restart of the gateway', () => {
  const earlier = pool({
    bands: { ...BUSY.bands, critical: band({ dispatched: sent({ bypass: 1_180 }) }) },
  });
  const rateAfter = (before: FlowPagePool) =>
    lines([BUSY], { before: { page: page(before), ageMs: 2_000 } })
      .find((line) => line.startsWith('critical'))
      ?.split(/ {2,}/)[5];
  expect(rateAfter(earlier)).toBe('10');
  const more = band({ dispatched: sent({ bypass: 9_999 }) });
  expect(rateAfter(pool({ bands: { ...BUSY.bands, critical: more } }))).toBe('-');
  expect(rateAfter(pool({ name: 'another' }))).toBe('-');
});

it.each([20, 30, 40, 60, 80, 100, 200])('fits into a terminal of %d columns', (width) => {
  const long = flow({
    tenant: 'a tenant with a long name '.repeat(8),
    model: 'org/model '.repeat(9),
  });
  const named = pool({ ...BUSY, name: 'n'.repeat(70), flows: [...BUSY.flows, long] });
  const shown = lines([named, BUSY], { width });
  expect(shown.filter((line) => line.length > width)).toEqual([]);
  // What matters most is left: who waits, and which server is away.
  const text = shown.join('\n');
  expect(text).toMatch(/acme/);
  if (width >= 30) expect(text).toMatch(/acme .* 22\b/);
  if (width >= 30) expect(text).toMatch(/not ready/);
  if (width >= 60) expect(text).toMatch(/vllm-1:8000/);
});

it('keeps control characters of names from the terminal', () => {
  const evil = flow({ tenant: 'a\u001b[2J\nb', model: 'm\u0007' });
  const text = lines([pool({ flows: [evil] })]).join('\n');
  expect(text).toContain('a?[2J b');
  expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f]/);
});
