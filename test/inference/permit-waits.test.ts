import type { Permit } from '../../inference/dispatcher';
import { createPermitDispatcher } from '../../inference/permit-dispatcher';
import { permitRequest as request, settle, unguarded } from './permit-requests';

describe('permits', () => {
  it('are handed over after whoever gave them back is done, in the final state of the queues', async () => {
    const dispatcher = createPermitDispatcher({
      global: 2,
      perModel: 2,
      onGuardTripped: unguarded,
    });
    const held = [dispatcher.tryAcquire(request())!, dispatcher.tryAcquire(request())!];
    const states: number[] = [];
    const granted: Permit[] = [];
    for (let i = 0; i < 2; i++) {
      dispatcher.wait(request(), (permit) => {
        states.push(dispatcher.stats().waiting);
        granted.push(permit);
      });
    }
    for (const permit of held) permit.release();
    expect(granted).toEqual([]);
    expect(dispatcher.stats()).toMatchObject({ inFlight: 2, waiting: 0 });
    await settle();
    expect(states).toEqual([0, 0]);
    for (const permit of granted) permit.release();
  });

  it('go to the next waiter if the wait ends between the grant and the handing over', async () => {
    const dispatcher = createPermitDispatcher({
      global: 1,
      perModel: 1,
      onGuardTripped: unguarded,
    });
    const held = dispatcher.tryAcquire(request())!;
    const granted: string[] = [];
    const first = dispatcher.wait(request(), () => granted.push('first'));
    dispatcher.wait(request(), (permit) => {
      granted.push('second');
      first.stop();
      permit.release();
    });
    held.release();
    first.stop();
    first.stop();
    await settle();
    expect(granted).toEqual(['second']);
    expect(dispatcher.stats()).toMatchObject({ inFlight: 0, waiting: 0, models: [] });
  });

  it('that are given back in a hold are used at its end, by waiters in their turn', () => {
    const dispatcher = createPermitDispatcher({
      global: 2,
      perModel: 2,
      onGuardTripped: unguarded,
    });
    const held = [dispatcher.tryAcquire(request())!, dispatcher.tryAcquire(request())!];
    const granted: string[] = [];
    const permits: Permit[] = [];
    const wait = (tenant: string): void => {
      dispatcher.wait(request({ tenant }), (permit) => {
        granted.push(tenant);
        permits.push(permit);
        // Like a chunk, which has one line that waits.
        if (granted.length < 4) wait(tenant);
      });
    };
    wait('a');
    wait('b');
    dispatcher.holdReleases();
    for (const permit of held) permit.release();
    expect(dispatcher.tryAcquire(request())).toBeNull();
    expect(granted).toEqual([]);
    dispatcher.endHold();
    expect(granted).toEqual(['a', 'b']);
    dispatcher.holdReleases();
    for (const permit of permits.splice(0)) {
      permit.sent();
      permit.release();
    }
    dispatcher.endHold();
    expect(granted).toEqual(['a', 'b', 'a', 'b']);
  });

  it('that are granted and not wanted any more in a hold go to the next waiter', () => {
    const dispatcher = createPermitDispatcher({
      global: 1,
      perModel: 1,
      onGuardTripped: unguarded,
    });
    const held = dispatcher.tryAcquire(request())!;
    const granted: string[] = [];
    dispatcher.wait(request(), (permit) => {
      granted.push('first');
      permit.release();
    });
    dispatcher.wait(request(), () => granted.push('second'));
    dispatcher.holdReleases();
    held.release();
    dispatcher.endHold();
    expect(granted).toEqual(['first', 'second']);
  });

  it('of a wider limit do not follow the order within a model', async () => {
    const dispatcher = createPermitDispatcher({
      global: 1,
      perModel: 3,
      onGuardTripped: unguarded,
    });
    const held = dispatcher.tryAcquire(request())!;
    const granted: string[] = [];
    for (const [model, order] of [
      ['m', 5],
      ['n', 9],
      ['m', 1],
    ] as const) {
      dispatcher.wait(request({ model, order }), (permit) => {
        granted.push(`${model}${order}`);
        permit.release();
      });
    }
    held.release();
    await settle();
    expect(granted).toEqual(['m5', 'n9', 'm1']);
  });
});
