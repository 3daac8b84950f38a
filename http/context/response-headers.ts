/** The tenant of a request that does not name one. */
export const DEFAULT_TENANT = 'default';

/**
 * Headers of every answer, errors and downloads included (docs/design/api-contract.md#response-headers).
 * `tenant` must be encoded as header text; `tookMs` is the time from the arrival of the request. Clients choose the
 * content of downloads, so a browser may neither render nor cache any answer.
 */
export function responseHeaders(
  requestId: string,
  tenant: string,
  tookMs = 0,
): Record<string, string> {
  return {
    'x-request-id': requestId,
    'openai-version': '2020-10-01',
    'openai-organization': tenant,
    'openai-processing-ms': String(tookMs),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
}
