import { FRAME_KIND, type FrameKind } from './frame';

/** One of several frames for the same offset: what decides between them. */
export interface Claim {
  readonly kind: FrameKind;
  readonly objectKey: string;
  readonly position: number;
}

/**
 * Whether `candidate` is the answer rather than `current` (execution §2): an output line first, then
 * the smaller object name, then the smaller position. A total order: the choice does not depend on
 * the order in which frames are met.
 */
export function isPreferred(candidate: Claim, current: Claim): boolean {
  const isOutput = candidate.kind === FRAME_KIND.output;
  if (isOutput !== (current.kind === FRAME_KIND.output)) return isOutput;
  if (candidate.objectKey !== current.objectKey) return candidate.objectKey < current.objectKey;
  return candidate.position < current.position;
}
