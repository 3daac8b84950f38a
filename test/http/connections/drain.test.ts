import { connect } from 'node:net';
import { once } from 'node:events';
import { openTestServer } from '../../support/http-server';
import { BOUNDARY, batchForm, formBytes } from '../../support/api';
import { until } from '../../support/until';

it('a server that is closed finishes the requests that run, and accepts no others', async () => {
  const server = await openTestServer();
  const url = `http://127.0.0.1:${server.port}`;
  const form = formBytes(batchForm());
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  async function* slowly() {
    yield form.subarray(0, 100);
    await released;
    yield form.subarray(100);
  }
  const running = fetch(`${url}/v1/forms`, {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    body: slowly(),
    duplex: 'half',
  });
  const inFlight = /http_requests_in_flight\{[^}]*path="\/v1\/forms"[^}]*\} 1/;
  await until(
    async () => inFlight.test(await server.registry.metrics()),
    5_000,
    'the upload to be running',
  );
  const closed = server.close();
  const isClosed = (): Promise<boolean> =>
    fetch(`${url}/health`).then(
      () => false,
      () => true,
    );
  await until(isClosed, 5_000, 'the port to be closed');
  release();
  const response = await running;
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ names: ['purpose', 'file'] });
  await closed;
});

it('a server that is closed does not wait for connections on which no request came', async () => {
  const server = await openTestServer();
  const unused = connect(server.port, '127.0.0.1');
  await once(unused, 'connect');
  // A served request proves that the server has accepted the connection before it.
  await (await fetch(`http://127.0.0.1:${server.port}/health`)).text();
  const lost = once(unused, 'close');
  await server.close();
  await lost;
});
