import { NightshiftError } from '../core/errors';
import { redactUrl } from '../platform/config-redact';
import type { GatewayConfig } from '../platform/config-schema';
import type { Backend, BackendOutcome, BackendRequest } from './backend';
import { BufferedExchange } from './buffered-exchange';
import { GatewayConnections, type GatewayConnectionsOptions } from './gateway-connections';

/** The longest delay of a timer in Node; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Settings of a backend that are not in the gateway's configuration. */
export interface HttpBackendOptions extends Omit<GatewayConnectionsOptions, 'timeoutMs'> {
  /** `limits.max_answer_bytes`, after content decoding. */
  readonly maxAnswerBytes: number;
}

/**
 * The backend of one gateway over HTTP/1.1. `request_timeout` counts from `send` to the last byte of
 * the answer. It retries nothing, treats a redirect as an answer, and decodes gzip, deflate and br.
 * @throws config_invalid for a `request_timeout` of 0
 */
export function createHttpBackend(gateway: GatewayConfig, options: HttpBackendOptions): Backend {
  const { maxAnswerBytes, ...connectionOptions } = options;
  const timeoutMs = timeoutOf(gateway);
  const connections = new GatewayConnections(gateway, { ...connectionOptions, timeoutMs });

  const start = (
    request: BackendRequest,
    signal: AbortSignal,
    resolve: (outcome: BackendOutcome) => void,
  ): void => {
    const onSettled = (outcome: BackendOutcome): void => {
      done();
      resolve(outcome);
    };
    const { attempt } = new BufferedExchange({ request, maxAnswerBytes, timeoutMs, onSettled });
    const done = connections.track(attempt, signal);
    connections.dispatch(request, attempt);
  };

  return {
    send: (request, signal) =>
      signal.aborted || connections.isClosing
        ? Promise.resolve(NOT_SENT)
        : new Promise((resolve) => start(request, signal, resolve)),
    close: () => connections.close(),
  };
}

const NOT_SENT: BackendOutcome = {
  kind: 'failure',
  reason: 'aborted',
  message: 'the request was aborted before it was sent',
};

function timeoutOf(gateway: GatewayConfig): number {
  const timeoutMs = Math.min(gateway.request_timeout, MAX_TIMER_MS);
  if (timeoutMs >= 1) return timeoutMs;
  const message = `gateway ${redactUrl(gateway.url)}: request_timeout must be longer than 0`;
  throw new NightshiftError('config_invalid', message);
}
