import { setMaxListeners } from 'node:events';
import type { Backend, BackendOutcome, BackendRequest } from '../../inference/backend';
import type { AcquireRequest, Dispatcher, Permit } from '../../inference/dispatcher';

/** What a test gives of a request; its end is a promise instead. */
export type PlainRequest = Omit<BackendRequest, 'onSettled' | 'isLeaving'> & {
  /** Aborts when the chunk of the request leaves. */
  readonly leaving?: AbortSignal;
};

/** Sends a request, and resolves with its end. `signal` aborts it. */
export function sendTo(
  backend: Backend,
  { leaving, ...request }: PlainRequest,
  signal?: AbortSignal,
): Promise<BackendOutcome> {
  return new Promise((resolve) => {
    const sent = backend.send({
      ...request,
      onSettled: resolve,
      isLeaving: () => leaving?.aborted === true,
    });
    listen(signal, () => sent.abort());
    listen(leaving, () => sent.closeIfHeld());
  });
}

function listen(signal: AbortSignal | undefined, onAbort: () => void): void {
  if (signal === undefined) return;
  setMaxListeners(0, signal);
  signal.addEventListener('abort', onAbort);
}

/** The `send` of a backend whose requests end as `outcomeOf` says, before `send` returns. */
export function endingWith(
  outcomeOf: (request: BackendRequest) => BackendOutcome,
): Backend['send'] {
  return (request) => {
    request.onSettled(outcomeOf(request));
    return { abort: () => undefined, closeIfHeld: () => undefined };
  };
}

/** Waits for a permit; rejects with an `AbortError` if `signal` aborts first. */
export function acquire(
  dispatcher: Dispatcher,
  request: AcquireRequest,
  signal?: AbortSignal,
): Promise<Permit> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(new DOMException('the wait was stopped', 'AbortError'));
    if (signal?.aborted === true) return aborted();
    const onAbort = (): void => {
      wait.stop();
      aborted();
    };
    const wait = dispatcher.wait(request, (permit) => {
      signal?.removeEventListener('abort', onAbort);
      resolve(permit);
    });
    signal?.addEventListener('abort', onAbort);
  });
}
