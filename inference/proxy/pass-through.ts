import type { PassThroughOptions } from './pass-through-options';
import { type ExchangeOwner, StreamExchange } from './stream-exchange';

/**
 * Sends one request to one backend, once, and passes the answer to the client byte for byte
 * (docs/design/gateway.md#pass-through). `owner` is called once, when the exchange with the backend has ended; the
 * last bytes may then still be on their way to the client. If an answer breaks after its head was sent, the client's
 * connection is cut, so that the client cannot take the part for the whole.
 */
export function passThrough(options: PassThroughOptions, owner: ExchangeOwner): void {
  new StreamExchange(options, owner).start();
}
