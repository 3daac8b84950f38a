import type { AcquireRequest } from '../../inference/dispatcher';

/** A request for a permit of model `m`. */
export function permitRequest(changes: Partial<AcquireRequest> = {}): AcquireRequest {
  return { tenant: 't', batch: 'b', model: 'm', ...changes };
}

/** The guard of a dispatcher whose test releases no permit twice. */
export function unguarded(): never {
  throw new Error('the guard tripped');
}

/** Lets grants reach their waiters. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
