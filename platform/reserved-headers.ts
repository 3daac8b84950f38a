/**
 * Headers of a request to a model server that no caller decides: framing belongs to the connection, the
 * rest is ours (contract §7.1 "Requests out"). `accept-encoding` is among them because a foreign list
 * could name a coding that we do not decode, `idempotency-key` because it belongs to the create call:
 * a model server would take all lines of the batch for one.
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
