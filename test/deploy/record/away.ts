import { rename } from 'node:fs/promises';
import path from 'node:path';
import { submit, chatLines } from '../../support/stack';
import { startRecordedStack } from './recorded-stack';

it('records a stack whose servers go away one after the other', async () => {
  const recorded = await startRecordedStack();
  const { backend, proxied } = recorded;
  const { postgresProxy, stack, temporalProxy } = proxied;
  const store = path.join(stack.dataDir, 'objects');

  await recorded.phase('healthy', 20);
  await recorded.phase('PostgreSQL refuses connections', 18, async () => {
    // Long enough that its chunk writes progress all the time.
    await submit(stack.client, chatLines(4_000));
    await postgresProxy.become('refuse');
  });
  await recorded.phase('PostgreSQL is back', 16, () => postgresProxy.become('pass'));
  await recorded.phase('Temporal refuses connections, and a batch is due', 30, async () => {
    await submit(stack.client, chatLines(5), '3s');
    await temporalProxy.become('refuse');
  });
  await recorded.phase('Temporal is back', 40, () => temporalProxy.become('pass'));
  await recorded.phase('the object store is gone', 14, () => rename(store, `${store}-gone`));
  await recorded.phase('the object store is back', 16, () => rename(`${store}-gone`, store));
  await recorded.phase('the model server answers 503', 48, () => {
    backend.judge = () => ({ status: 503, body: '{}' });
    return Promise.resolve();
  });
  await recorded.phase('the model server is back', 16, () => {
    backend.judge = () => null;
    return Promise.resolve();
  });
  await recorded.finish('away');
});
