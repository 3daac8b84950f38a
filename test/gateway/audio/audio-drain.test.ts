import { until } from '../../support/until';
import { closeAll } from '../gateway-fixtures';
import {
  answerCall,
  type AudioGateway,
  formOf,
  type HoldingWorker,
  sendForm,
  startAudioGateway,
  startWorker,
  untilCalled,
} from './audio-fixtures';

afterEach(closeAll);

/** A gateway with one request in flight and one that waits. */
async function busyGateway(settings: Record<string, unknown>) {
  const worker = await startWorker();
  const { server } = worker;
  const gateway = await startAudioGateway(
    [worker],
    {
      workers: [{ address: server.address, slots: 1 }],
      scheduler: { shutdown_grace: '300ms' },
    },
    settings,
  );
  const running = sendForm(gateway, formOf());
  await untilCalled(worker, 1);
  const waiting = sendForm(gateway, formOf());
  await untilWaiting(gateway);
  return { gateway, worker, running, waiting };
}

async function untilWaiting(gateway: AudioGateway): Promise<void> {
  const depth = 'scheduler_queue_depth{priority="BATCH",process="gateway"}';
  await until(async () => (await gateway.metric(depth)) === 1, 10_000, 'a waiting request', 5);
}

async function answerNext(worker: HoldingWorker, count: number): Promise<void> {
  await untilCalled(worker, count);
  answerCall(worker.held[count - 1]!);
}

it('lets requests that wait or run end before the process does', async () => {
  const { gateway, worker, running, waiting } = await busyGateway({ drain_budget: '20s' });
  const closed = gateway.close();
  await answerNext(worker, 1);
  await answerNext(worker, 2);
  expect([(await running).status, (await waiting).status]).toEqual([200, 200]);
  await closed;
});

it('gives up what is left at the end, and says what was never dispatched', async () => {
  const { gateway, running, waiting } = await busyGateway({ drain_budget: '1s' });
  const closed = gateway.close();
  const dropped = await waiting;
  expect([dropped.status, dropped.headers.get('x-nightshift-dropped')]).toEqual([
    503,
    'shutting_down',
  ]);
  const cut = await running;
  expect([cut.status, cut.headers.get('x-nightshift-dropped')]).toEqual([503, null]);
  expect(await cut.json()).toMatchObject({ error: { code: 'shutting_down' } });
  await closed;
});
