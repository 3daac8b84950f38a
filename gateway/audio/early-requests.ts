import type { FastifyReply } from 'fastify';
import type { Band } from '../../core/dispatch/queue/band';
import { answerFault } from '../answers/drop-answer';
import type { AudioContext } from './audio-context';

/**
 * Whether nobody knows yet who serves a model: an audio worker that has not answered may have it, and no pool names it.
 * The pool of `*` has to wait: what it refuses is refused for good, such as a line of a batch after a restart.
 */
export function isTooEarly({ audio, pools }: AudioContext, model: string): boolean {
  return !audio.scheduler.isComplete && !pools.names(model);
}

/** Answers a request that came too early. It may be sent again. */
export function answerTooEarly(context: AudioContext, reply: FastifyReply, band: Band): void {
  context.metrics.flow.bands[band].dropped.no_backends++;
  const { status_policy: policy } = context.config.gateway;
  answerFault(reply, 'no_backends', { policy, readyBackends: 0, retryAfterSec: 5 });
}
