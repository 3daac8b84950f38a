import { Gate } from '../../../../core/dispatch/pool/gate';
import type { RequestQueueControllerSettings } from '../../../../core/dispatch/pool/pool-settings';
import { Stock } from '../../../../core/dispatch/pool/stock';
import { BAND } from '../../../../core/dispatch/queue/band';
import { settingsWith } from './settings';

function gateOf(changes: Partial<RequestQueueControllerSettings>, readyBackends = 1) {
  const { requestQueueController, bands } = settingsWith({ requestQueueController: changes });
  const stock = new Stock();
  const gate = new Gate(requestQueueController, bands.ceilings, stock);
  gate.pool = { readyBackends, limit: 10, sheddableCap: Infinity };
  /** How far requests fill the stock, on arrival and from the queue. */
  const fill = (isOpen: () => boolean): number => {
    while (isOpen()) add();
    return stock.requests;
  };
  const add = () => {
    stock.add(BAND.standard, 1);
    gate.onStockChanged();
  };
  const remove = () => {
    stock.remove(BAND.standard, 1);
    gate.onStockChanged();
  };
  return { gate, stock, fill, add, remove };
}

it('is full at the upper bound if bounds are fixed, and at the learnt limits otherwise', () => {
  expect(gateOf({ watermarkPerBackend: 2 }).gate.fullAt).toBe(2.2);
  const { gate } = gateOf({});
  expect([gate.fullAt, gate.bounds.upper]).toEqual([10, 10]);
  // Users may exceed what the backends can use.
  gate.pool = { readyBackends: 1, limit: 256, learnt: 8, sheddableCap: Infinity };
  expect(gate.bounds).toEqual({ lower: 256, watermark: 8, upper: 256 });
  expect(gate.fullAt).toBe(8);
});

describe('static bounds', () => {
  it('let bypasses fill up to the upper bound, and the queue up to the lower one', () => {
    const { gate, fill } = gateOf({ watermarkPerBackend: 2 });
    expect(gate.bounds).toEqual({ lower: 1.8, watermark: 2, upper: 2.2 });
    expect(fill(() => gate.isOpenForQueue(BAND.standard))).toBe(2);
    expect(fill(() => gate.isOpenOnArrival(BAND.standard))).toBe(3);
  });

  it('are scaled by the ready backends, and can be set one by one', () => {
    const { gate } = gateOf({ lowerBoundPerBackend: 1, upperBoundPerBackend: 4 }, 3);
    expect(gate.bounds).toEqual({ lower: 3, watermark: 6, upper: 12 });
    gate.pool = { ...gate.pool, readyBackends: 0 };
    expect(gate.bounds.upper).toBe(0);
    expect(gate.isOpenOnArrival(BAND.critical)).toBe(false);
  });

  it('open an idle pool even if the lower bound is 0', () => {
    const { gate, fill } = gateOf({ lowerBoundPerBackend: 0 });
    expect(fill(() => gate.isOpenForQueue(BAND.standard))).toBe(1);
  });

  it('drain with a Schmitt trigger from below the lower bound up to the upper one', () => {
    const { gate, fill, remove } = gateOf({ watermarkPerBackend: 10, hysteresis: 'schmitt' });
    expect(fill(() => gate.isOpenForQueue(BAND.standard))).toBe(11);
    remove();
    remove();
    expect(gate.isOpenForQueue(BAND.standard)).toBe(false);
    remove();
    expect(gate.isOpenForQueue(BAND.standard)).toBe(true);
    expect(fill(() => gate.isOpenForQueue(BAND.standard))).toBe(11);
  });
});

describe('adaptive bounds', () => {
  it('are the learnt limit, and sheddable requests use 90 % of it', () => {
    const { gate, fill } = gateOf({});
    expect(fill(() => gate.isOpenForQueue(BAND.sheddable))).toBe(9);
    expect(fill(() => gate.isOpenOnArrival(BAND.critical))).toBe(10);
  });

  it('are closed while the limit of every backend is 0', () => {
    const { gate } = gateOf({});
    gate.pool = { ...gate.pool, limit: 0 };
    expect(gate.isOpenOnArrival(BAND.critical)).toBe(false);
  });
});
