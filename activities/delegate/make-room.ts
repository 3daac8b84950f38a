import { Pace } from '../../core/delegation/pace';
import { pause } from '../runtime/pause';
import type { DelegateDeps } from './deps';

/** Called after the work on each line of a part; pauses while local models need the thread. */
export type MakeRoom = (bytes: number, signal: AbortSignal) => Promise<void> | void;

/** For one attempt at a part (docs/design/delegation.md#local-models-first). */
export function makeRoomFor({ requestsEnded }: Pick<DelegateDeps, 'requestsEnded'>): MakeRoom {
  const pace = new Pace(requestsEnded(), performance.now());
  return (bytes, signal) => {
    if (!pace.worked(bytes)) return;
    const pauseMs = pace.pauseMs(requestsEnded(), performance.now());
    if (pauseMs > 0) return pause(pauseMs, signal);
  };
}
