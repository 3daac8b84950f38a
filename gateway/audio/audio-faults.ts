import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FaultCode } from '../../core/dispatch/drop-codes';
import type { Band } from '../../core/dispatch/queue/band';
import { NightshiftError } from '../../core/errors';
import type { ErrorBody } from '../../http/errors/error-envelope';
import { answerFault, faultBody } from '../answers/drop-answer';
import { traceEnd } from '../requests/request-trace';
import type { AudioContext } from './audio-context';
import type { AudioJobEnd } from './job';

/** How a job failed. */
export type FaultEnd = Extract<AudioJobEnd, { readonly kind: 'fault' }>;

/** Whose request failed. */
export interface FailedRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly band: Band;
  readonly model: string;
}

/** An answer that has begun, so that its status cannot be changed. */
export interface BegunAnswer {
  fail(body: ErrorBody): void;
}

/** A worker that was lost may be replaced soon. */
const LOST_RETRY_SEC = '5';

/** Answers requests that no audio worker has served (docs/design/audio.md#answers). */
export class AudioFaults {
  readonly #context: AudioContext;
  readonly #failed: FailedRequest;

  constructor(context: AudioContext, failed: FailedRequest) {
    this.#context = context;
    this.#failed = failed;
  }

  /** @param begun the answer, if a part of it was sent; else null */
  answer(end: FaultEnd, begun: BegunAnswer | null): void {
    const { request, reply, band } = this.#failed;
    const { code } = end;
    if (code === 'invalid' || code === 'not_found') {
      this.#answerRefusal(workerFault(code, end.message), begun);
      return;
    }
    traceEnd(request, { end: null, fault: code });
    this.#report(code, end);
    if (code === 'client_closed' || reply.raw.destroyed) {
      reply.hijack();
      return;
    }
    if (begun !== null) {
      begun.fail(faultBody(code, 500));
      return;
    }
    const queue = `queue;dur=${Math.round(end.queueMs)}`;
    const worker = end.wasDispatched ? `, worker;dur=${Math.round(end.workerMs)}` : '';
    reply.header('server-timing', queue + worker);
    if (code === 'backend_timeout') reply.header('x-should-retry', 'false');
    if (code === 'backend_lost') reply.header('retry-after', LOST_RETRY_SEC);
    const { audio, config } = this.#context;
    answerFault(reply, code, {
      policy: config.gateway.status_policy,
      readyBackends: audio.scheduler.readyWorkers,
      retryAfterSec: audio.scheduler.retryAfterSec(band),
      wasDispatched: end.wasDispatched,
    });
  }

  /** The worker refuses the request itself. */
  #answerRefusal(error: NightshiftError, begun: BegunAnswer | null): void {
    if (begun === null) {
      this.#failed.reply.send(error);
      return;
    }
    const { message, param, apiCode: code } = error;
    begun.fail({ error: { message, type: 'invalid_request_error', param, code } });
  }

  #report(code: FaultCode, { queueMs, message }: FaultEnd): void {
    const { request, band, model } = this.#failed;
    this.#context.metrics.flow.bands[band].dropped[code]++;
    this.#context.faults.log({
      ...{ code, band, requestId: request.id, tenant: request.tenant, model },
      ...{ pool: 'audio', waitedMs: queueMs, backend: null, reason: message },
    });
  }
}

function workerFault(code: 'invalid' | 'not_found', message: string | null): NightshiftError {
  const text = message ?? 'The audio worker refused the request.';
  return code === 'invalid'
    ? new NightshiftError('invalid_request', text, { apiCode: 'invalid_value' })
    : new NightshiftError('not_found', text, { param: 'model', apiCode: 'model_not_found' });
}
