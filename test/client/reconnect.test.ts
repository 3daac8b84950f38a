import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { AddressInfo } from 'node:net';
import { openTemporalPing } from '../../client/temporal-ping';
import { configSchema } from '../../platform/config-schema';
import { until } from '../support/until';

let server: Server;
afterEach(() => new Promise((resolve) => void server.close(resolve)));

it('retries a Temporal server that is away about once a second, even after a long outage', async () => {
  let tries = 0;
  server = createServer((socket) => {
    tries++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const { temporal } = configSchema.parse({ temporal: { address: `127.0.0.1:${port}` } });
  const ping = openTemporalPing(temporal);
  let isOver = false;
  const asking = (async () => {
    for (; !isOver; await delay(50)) await ping.ask().catch(() => undefined);
  })();
  // By gRPC's default backoff the eighth try would come after 43 s.
  await until(() => tries >= 8, 20_000, 'eight tries').finally(() => (isOver = true));
  await asking;
  await ping.close();
}, 30_000);
