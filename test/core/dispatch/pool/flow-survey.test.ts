import { FlowSurvey } from '../../../../core/dispatch/pool/flow-survey';
import { BAND, BANDS, type Band, type PerBand } from '../../../../core/dispatch/queue/band';
import { FairRequestQueue } from '../../../../core/dispatch/queue/fair-request-queue';
import { PRIORITY } from '../../../../core/chunks/priority';
import { makeRequest } from '../queue/requests';

type Queues = PerBand<FairRequestQueue>;
const NOW_MS = 1_000_000;

function createQueues(): Queues {
  return [new FairRequestQueue(), new FairRequestQueue(), new FairRequestQueue()];
}

/** Queues so many requests of a tenant; the first one came `ageMs` ago, each further one a second later. */
function fill(
  queues: Queues,
  tenant: string,
  count: number,
  ageMs = 1_000,
  band: Band = BAND.standard,
): void {
  for (let i = 0; i < count; i++) {
    const request = makeRequest({ tenant, band });
    queues[band].push(request);
    request.queuedAtMs = NOW_MS - ageMs + 1_000 * i;
  }
}

function survey(queues: Queues, most: number) {
  const { steps, result } = finished(new FlowSurvey(queues, most, NOW_MS));
  return { steps, ...result };
}

function finished(one: FlowSurvey) {
  const steps = [...one.steps()].length;
  return { steps, result: one.result };
}

it('shows the flows with the most waiting requests, however many flows there are', () => {
  const queues = createQueues();
  // Each length from 1 to 100 once, in an order that is neither rising nor falling.
  for (let i = 0; i < 100; i++) fill(queues, `tenant-${i}`, ((i * 37) % 100) + 1);
  const { longest, steps } = survey(queues, 7);
  expect(longest.map(({ queued }) => queued)).toEqual([100, 99, 98, 97, 96, 95, 94]);
  expect(steps).toBe(100);
});

it('orders flows without waiting requests by requests in flight, then by tokens of the last minute', () => {
  const queues = createQueues();
  const [, standard] = queues;
  fill(queues, 'waits', 1);
  for (const tenant of ['two', 'one', 'two']) standard.bypass(makeRequest({ tenant }));
  standard.table.flowOf('served', 'm').onServed(10, NOW_MS - 1_000);
  standard.table.flowOf('served more', 'm').onServed(20, NOW_MS - 1_000);
  standard.table.flowOf('served long ago', 'm').onServed(30, NOW_MS - 61_000);
  const rows = survey(queues, 10).longest.map((flow) => [
    flow.tenant,
    flow.inFlight,
    flow.recentTokens,
  ]);
  expect(rows).toEqual([
    ['waits', 0, 0],
    ['two', 2, 0],
    ['one', 1, 0],
    ['served more', 0, 20],
    ['served', 0, 10],
  ]);
});

it('finds the oldest request of each band, also behind a more urgent one', () => {
  const queues = createQueues();
  fill(queues, 'a', 3, 5_000);
  fill(queues, 'b', 1, 9_000);
  const relaxed = makeRequest({ band: BAND.sheddable, priority: PRIORITY.relaxed });
  const urgent = makeRequest({ band: BAND.sheddable, priority: PRIORITY.urgent });
  for (const request of [relaxed, urgent]) queues[BAND.sheddable].push(request);
  relaxed.queuedAtMs = NOW_MS - 7_000;
  urgent.queuedAtMs = NOW_MS - 100;
  expect(survey(queues, 10).oldestMs).toEqual([null, 9_000, 7_000]);
});

it('takes steps by the number of flows, not of requests', () => {
  const queues = createQueues();
  for (const band of BANDS) fill(queues, 'a', 1_000, 1_000, band);
  expect(survey(queues, 1).steps).toBe(3);
});
