/**
 * Headers that no client may set in requests to model servers: headers of the connection, and headers that
 * Nightshift sets itself (docs/design/api-contract.md#headers-sent). `accept-encoding` is reserved because
 * a client could name a coding that we do not decode. `idempotency-key` belongs to the create call: a model
 * server that received it would treat all lines of the batch as the same request.
 */
export const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-gateway-inference-objective',
  'x-request-id',
  'x-slo-ttft-ms',
]);
