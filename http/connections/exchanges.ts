import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** One request on a connection, and the answer to it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Called for each request of a server. */
export interface ExchangeWatcher {
  /** The request has arrived. The framework, which may answer in the same tick, gets it afterwards. */
  begin(exchange: Exchange): void;
  /** The answer has ended, or the connection is closed. */
  end?(exchange: Exchange): void;
}

const WATCHERS = new WeakMap<Server, ExchangeWatcher[]>();

/** Calls `watcher` for each request. The last one that was added is called first. */
export function watchExchanges(server: Server, watcher: ExchangeWatcher): void {
  const known = WATCHERS.get(server);
  if (known !== undefined) known.unshift(watcher);
  else {
    const watchers = [watcher];
    WATCHERS.set(server, watchers);
    server.prependListener('request', (request, response) => {
      watch(new WatchedExchange(request, response, watchers));
    });
  }
}

const EXCHANGE = Symbol('exchange');

/** A response that carries its exchange. */
interface WatchedResponse extends ServerResponse {
  [EXCHANGE]?: WatchedExchange;
}

/**
 * Calls back once when the answer has ended, or its client has disconnected. All that wait for the end of an answer
 * share one listener, because each listener costs a short request a hundredth of its processor time.
 */
export function whenClosed(response: ServerResponse, callback: () => void): void {
  const exchange = (response as WatchedResponse)[EXCHANGE];
  if (exchange === undefined || response.closed) response.once('close', callback);
  else exchange.callbacks.push(callback);
}

class WatchedExchange implements Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly watchers: readonly ExchangeWatcher[];
  readonly callbacks: (() => void)[] = [];

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    watchers: readonly ExchangeWatcher[],
  ) {
    this.request = request;
    this.response = response;
    this.watchers = watchers;
  }
}

function watch(exchange: WatchedExchange): void {
  const { response, watchers } = exchange;
  (response as WatchedResponse)[EXCHANGE] = exchange;
  response.once('close', () => {
    for (const watcher of watchers) watcher.end?.(exchange);
    for (const callback of exchange.callbacks) callback();
  });
  for (const watcher of watchers) watcher.begin(exchange);
}
