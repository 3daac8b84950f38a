import type { AddressInfo } from 'node:net';
import { batchForm, BOUNDARY, formBytes, openTestApi } from '../support/api';
import { closeBareServers, connect, errorIn, get } from '../support/bare-server';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';

afterEach(closeBareServers);

it(
  'limits connections, headers and bodies as the settings say',
  async () => {
    const api = await openTestApi({
      config: {
        api: {
          ...{ min_body_rate: 1_000, body_grace: '300ms', header_timeout: '500ms' },
          ...{ max_connections: 4, max_connections_per_address: 2 },
        },
      },
    });
    await api.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = api.app.server.address() as AddressInfo;
    const before = await api.keys();
    const form = formBytes(batchForm());
    const type = `content-type: multipart/form-data; boundary=${BOUNDARY}`;
    const head = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\n${type}\r\ncontent-length: ${form.length}\r\n\r\n`;
    const upload = connect(port, head + form.subarray(0, 100).toString());
    const slow = connect(port, 'GET /v1/files HTTP/1.1\r\nhost: local');
    const third = connect(port, get('/health'));
    await Promise.all([upload.closed, slow.closed, third.closed]);
    expect(third.text()).toMatch(/^HTTP\/1\.1 429 /);
    expect(upload.text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 408 /);
    for (const client of [upload, slow]) {
      expect(errorIn(client.text())).toMatchObject({ type: 'invalid_request_error', code: null });
    }
    await until(async () => (await api.keys()).length === before.length, 5_000, 'its object to go');
    await api.close();
  },
  POSTGRES_START_MS,
);
