import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import { NightshiftError } from '../../core/errors';

const MAX_REDIRECTS = 5;

/**
 * The body of a 200 answer, after at most five redirects. If no byte arrives for `stallTimeoutMs`, at any
 * stage, the connection is closed and the body fails. There is no timeout for the whole transfer, because
 * the time for 100 MB depends on the network.
 *
 * @throws unavailable with the URL
 */
export function openUrl(
  url: string,
  stallTimeoutMs: number,
  redirects = 0,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let body: IncomingMessage | undefined;
    const request = (url.startsWith('https:') ? getHttps : getHttp)(url, (response) => {
      const { statusCode = 0 } = response;
      const { location } = response.headers;
      const isRedirect = statusCode >= 300 && statusCode < 400 && location !== undefined;
      if (isRedirect && redirects < MAX_REDIRECTS) {
        response.resume();
        openUrl(new URL(location, url).href, stallTimeoutMs, redirects + 1).then(resolve, reject);
      } else if (statusCode === 200) {
        body = response;
        resolve(response);
      } else {
        response.destroy();
        reject(unavailable(`${url} answered ${statusCode}`));
      }
    });
    request.setTimeout(stallTimeoutMs, () => {
      // After the response has begun, errors of the request reach no listener: destroy the response.
      (body ?? request).destroy(unavailable(`${url}: no byte for ${stallTimeoutMs / 1_000} s`));
    });
    request.once('error', (error) =>
      reject(error instanceof NightshiftError ? error : unavailable(`${url}: ${error.message}`)),
    );
    limitConnecting(request, stallTimeoutMs, reject);
  });
}

/** The socket's idle timeout does not cover name resolution and connecting: this timer does. */
function limitConnecting(
  request: ReturnType<typeof getHttp>,
  timeoutMs: number,
  reject: (error: Error) => void,
): void {
  const timer = setTimeout(() => {
    const error = unavailable(`no answer within ${timeoutMs / 1_000} s`);
    request.destroy(error);
    reject(error);
  }, timeoutMs);
  request.once('response', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}

function unavailable(message: string): NightshiftError {
  return new NightshiftError('unavailable', message);
}
