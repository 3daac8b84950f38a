/**
 * Why the server refused or ended a connection that its client would have kept
 * (docs/design/api-contract.md#connections). Such requests reach no route, so no other series counts them.
 */
export type ClosedReason =
  /** A new connection was refused: there are too many, of all clients or of one address. */
  | 'max_connections'
  | 'max_connections_per_address'
  /** An idle connection made room for a new one. */
  | 'evicted'
  /** The headers, or the body, of a request arrived too slowly. */
  | 'slow_headers'
  | 'slow_body'
  /** The headers of a request were longer than the limit. */
  | 'large_headers'
  /** What arrived is not HTTP. */
  | 'invalid';

/** Is told of each such connection; must not throw. */
export type OnClosed = (reason: ClosedReason) => void;
