import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** One request on a connection, and the answer to it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Calls `begin` for each request before the framework, which may answer in the same tick, gets it. */
export function onExchange(server: Server, begin: (exchange: Exchange) => void): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    begin({ request, response });
  });
}
