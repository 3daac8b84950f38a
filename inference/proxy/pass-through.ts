import type { ExchangeEnd } from './exchange-end';
import type { PassThroughOptions } from './pass-through-options';
import { StreamExchange } from './stream-exchange';

/**
 * Sends one request to one backend, once, and passes the answer to the client byte for byte
 * (docs/design/gateway.md#pass-through). It resolves once, when the exchange with the backend has ended; the
 * last bytes may then still be on their way to the client. It never rejects. If an answer breaks after its head
 * was sent, the client's connection is cut, so that the client cannot take the part for the whole.
 */
export function passThrough(options: PassThroughOptions): Promise<ExchangeEnd> {
  return new Promise((resolve) => {
    new StreamExchange(options, { onSettled: resolve }).start();
  });
}
