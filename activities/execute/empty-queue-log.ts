import { EmptyQueueWatch } from '../../core/dispatch/empty-queue-watch';
import type { Logger } from '../../platform/logger';
import type { ExecuteDispatcher } from './deps';

/** Tells operators that the queue of a gateway runs empty, and which setting limits the worker. */
export class EmptyQueueLog {
  readonly #watch = new EmptyQueueWatch();
  readonly #dispatcher: Pick<ExecuteDispatcher, 'scarcePermitOf'>;
  readonly #logger: Logger;

  constructor(dispatcher: Pick<ExecuteDispatcher, 'scarcePermitOf'>, logger: Logger) {
    this.#dispatcher = dispatcher;
    this.#logger = logger;
  }

  /** An answer named its time in the queue. Call it before the permit of its request is released. */
  onAnswer(model: string, queueMs: number): void {
    const setting = this.#dispatcher.scarcePermitOf(model);
    const sample = { queueMs, isLineWaiting: setting !== null, nowMs: performance.now() };
    if (!this.#watch.onAnswer(model, sample)) return;
    this.#logger.warn(
      { model, setting },
      `the gateway's queue ran empty while lines waited for a permit of this worker: raise ${setting}`,
    );
  }
}
