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
});
