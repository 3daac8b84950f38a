import type { FastifyReply } from 'fastify';
import {
  DROP_CODES,
  dropStatus,
  type FaultCode,
  type StatusPolicy,
} from '../../core/dispatch/drop-codes';
import { type ErrorBody, JSON_TYPE } from '../../http/errors/error-envelope';

/** What an answer depends on besides its code. */
export interface FaultContext {
  readonly policy: StatusPolicy;
  readonly readyBackends: number;
  /** When the queue will have room, s: `Retry-After` of codes that do not have their own. */
  readonly retryAfterSec: number;
  /** Whether a backend has seen the request, so that it was not dropped. By default the code decides. */
  readonly wasDispatched?: boolean;
}

/** The texts of the answers: what happened, and what to do next. */
const MESSAGES: Readonly<Record<FaultCode, string>> = {
  too_many_flows: 'The model servers are busy and the queue is full. Please try again.',
  insufficient_flow_capacity:
    'Too many of your requests for this model are waiting. Wait for some of them, then try again.',
  queue_bytes_exceeded:
    'The requests that this server receives and holds are too large together. Please try again.',
  queue_ttl_expired: 'The model servers are busy: the request waited too long. Please try again.',
  not_critical: 'The model servers are busy and this request may not wait. Please try again.',
  no_backends: 'No model server is ready for this model. Please try again.',
  shutting_down: 'This server is shutting down. Please try again.',
  evicted: 'A request with a higher priority needed the place of this one. Please try again.',
  deadline_exceeded:
    'The request waited longer than its header x-slo-ttft-ms allows. Allow more time, or send it again later.',
  client_closed: 'The client closed the connection.',
  cancelled: 'The request was cancelled.',
  internal: 'The server had an error while processing your request. Please try again.',
  backend_unreachable: 'The model server could not be reached. Please try again.',
  backend_lost: 'The connection to the model server broke. Please try again.',
  backend_timeout: 'The model server did not answer in time. Please try again.',
  backend_failed: 'The audio worker failed to process the request.',
  backend_exhausted:
    'The audio workers refused the request because they are busy. Please try again.',
};

const BACKEND_FAULTS = {
  // Nothing was sent, so the request may be sent again without a doubt.
  backend_unreachable: { status: 502, isDrop: true, reason: null, retryAfterSec: 1 },
  backend_lost: { status: 502, isDrop: false, reason: null, retryAfterSec: null },
  backend_timeout: { status: 504, isDrop: false, reason: null, retryAfterSec: null },
  backend_failed: { status: 502, isDrop: false, reason: null, retryAfterSec: null },
  backend_exhausted: { status: 503, isDrop: false, reason: null, retryAfterSec: 5 },
} as const;

/**
 * Answers a request that got no answer from a backend, in OpenAI's error envelope. `x-nightshift-dropped` says that
 * no backend has served it (docs/design/gateway.md#answers-of-the-gateway).
 */
export function answerFault(reply: FastifyReply, code: FaultCode, context: FaultContext) {
  const { isDrop, reason, retryAfterSec } = isBackendFault(code)
    ? BACKEND_FAULTS[code]
    : DROP_CODES[code];
  const status = isBackendFault(code) ? BACKEND_FAULTS[code].status : dropStatus(code, context);
  const isDropped = isDrop && context.wasDispatched !== true;
  if (isDropped) reply.header('x-nightshift-dropped', code);
  if (isDrop || retryAfterSec !== null) {
    reply.header('retry-after', String(retryAfterSec ?? context.retryAfterSec));
  }
  if (isDropped && reason !== null) reply.header('x-llm-d-request-dropped-reason', reason);
  return reply.code(status).type(JSON_TYPE).send(faultBody(code, status));
}

/** The envelope of a fault. */
export function faultBody(code: FaultCode, status: number): ErrorBody {
  const type = status === 429 ? 'requests' : 'server_error';
  return { error: { message: MESSAGES[code], type, param: null, code } };
}

function isBackendFault(code: FaultCode): code is keyof typeof BACKEND_FAULTS {
  return code in BACKEND_FAULTS;
}
