import { NightshiftError } from '../core/errors';
import { redactUrl } from '../platform/config-redact';
import type { GatewayConfig } from '../platform/config-schema';
import type { Backend, BackendOutcome, BackendRequest, SentRequest } from './backend';
import { BufferedExchange, HELD } from './buffered-exchange';
import { DispatchReports } from './dispatch-reports';
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
 * the answer, and anew from the dispatch if the gateway reports it. It retries nothing, treats a redirect as an answer, and decodes gzip, deflate and br.
 * @throws config_invalid for a `request_timeout` of 0
 */
export function createHttpBackend(gateway: GatewayConfig, options: HttpBackendOptions): Backend {
  const { maxAnswerBytes, ...connectionOptions } = options;
  const timeoutMs = timeoutOf(gateway);
  const connections = new GatewayConnections(gateway, { ...connectionOptions, timeoutMs });
  const reports = new DispatchReports();
  const onEnded = (): void => connections.onEnded();
  return {
    send: (request) => {
      if (connections.isClosing) return endedAtOnce(request, NOT_SENT);
      // It would only be held and closed.
      if (reports.areSent && request.isLeaving?.() === true) return endedAtOnce(request, HELD);
      const exchange = new BufferedExchange({
        request,
        reports,
        maxAnswerBytes,
        timeoutMs: timerOf(request.timeoutMs ?? timeoutMs),
        onEnded,
      });
      connections.dispatch(request, exchange.attempt);
      return exchange;
    },
    get reportsDispatch() {
      return reports.areSent;
    },
    prepare: (requests) => connections.prepare(requests),
    close: () => connections.close(),
  };
}

const NOT_SENT: BackendOutcome = {
  kind: 'failure',
  reason: 'aborted',
  message: 'the request was not sent, because its gateway is being closed',
};

const ENDED: SentRequest = { abort: () => undefined, closeIfHeld: () => undefined };

function endedAtOnce(request: BackendRequest, outcome: BackendOutcome): SentRequest {
  request.onSettled(outcome);
  return ENDED;
}

function timerOf(timeoutMs: number): number {
  return Math.min(timeoutMs, MAX_TIMER_MS);
}

function timeoutOf(gateway: GatewayConfig): number {
  const timeoutMs = timerOf(gateway.request_timeout);
  if (timeoutMs >= 1) return timeoutMs;
  const message = `gateway ${redactUrl(gateway.url)}: request_timeout must be longer than 0`;
  throw new NightshiftError('config_invalid', message);
}
