import { submit, chatLines } from '../../support/stack';
import { startRecordedStack } from './recorded-stack';

it('records a stack whose processes freeze, and whose database is slow', async () => {
  const recorded = await startRecordedStack();
  const { postgresProxy, stack } = recorded.proxied;

  await recorded.phase('healthy', 16);
  const api = stack.pidOf('api');
  await recorded.phase('the API is frozen', 10, () => signal(api, 'SIGSTOP'));
  await recorded.phase('the API runs again', 14, () => signal(api, 'SIGCONT'));
  const worker = stack.pidOf('worker');
  await recorded.phase('the worker is frozen', 36, async () => {
    await signal(worker, 'SIGSTOP');
    for (let i = 0; i < 5; i++) await submit(stack.client, chatLines(5));
    recorded.traffic = false;
  });
  await recorded.phase('the worker runs again', 13, () => signal(worker, 'SIGCONT'));
  recorded.traffic = true;
  await recorded.phase('traffic is back', 20);
  const flap = flapping(
    () => postgresProxy.become('hang'),
    () => postgresProxy.become('pass'),
  );
  await recorded.phase('PostgreSQL is slow', 20);
  await flap.end();
  await recorded.phase('PostgreSQL is fast again', 16);
  await recorded.finish('frozen');
});

function signal(pid: number, name: NodeJS.Signals): Promise<void> {
  process.kill(pid, name);
  return Promise.resolve();
}

/** Statements wait for more than a second, and less than the two seconds of a check. */
function flapping(
  begin: () => Promise<void>,
  release: () => Promise<void>,
): { end(): Promise<void> } {
  let isOver = false;
  const loop = async (): Promise<void> => {
    while (!isOver) {
      await begin();
      await pause(1_700);
      await release();
      await pause(150);
    }
  };
  const done = loop();
  return {
    end: async () => {
      isOver = true;
      await done;
    },
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
