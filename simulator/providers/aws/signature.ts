import type { IncomingHttpHeaders } from 'node:http';

/**
 * The id of the access key that signed a request; empty without one. The signature is not checked. Format:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html.
 */
export function accessKeyOf({ authorization = '' }: IncomingHttpHeaders): string {
  return /^AWS4-HMAC-SHA256 Credential=([^/]+)\//.exec(authorization)?.[1] ?? '';
}
