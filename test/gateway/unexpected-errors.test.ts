import { GatewayPool } from '../../gateway/pools/gateway-pool';
import { StreamExchange } from '../../inference/proxy/stream-exchange';
import {
  ANSWER,
  ask,
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
} from './gateway-fixtures';

afterEach(closeAll);
afterEach(() => jest.restoreAllMocks());

const fail = (): never => {
  throw new Error('unexpected');
};

it.each([
  ['the exchange with its backend', () => jest.spyOn(StreamExchange.prototype, 'start')],
  ['the choice of its backend', () => jest.spyOn(GatewayPool.prototype, 'choose')],
])('frees the stock and the backend of a request when %s fails unexpectedly', async (_, method) => {
  const backend = await startBackend((_request, response) => {
    response.end(JSON.stringify(ANSWER));
  });
  const gateway = await startGateway([backend], ONE_IN_FLIGHT);
  method().mockImplementationOnce(fail);
  const { status, json } = await ask(gateway).answer;
  expect(status).toBe(500);
  expect(json().error?.type).toBe('server_error');
  const { stock, backends } = await gateway.flow();
  expect(stock.requests).toBe(0);
  expect(backends.map(({ in_flight }) => in_flight)).toEqual([0]);
  const labels = 'model="m",targetModel="m",process="gateway"';
  expect(await gateway.metric(`stock_level{${labels}}`)).toBe(0);
  expect((await ask(gateway).answer).status).toBe(200);
});
