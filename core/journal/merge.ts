import { FRAME_KIND, type FrameKind } from './frame';

/** The properties of a frame that decide between several frames for the same offset. */
export interface Claim {
  readonly kind: FrameKind;
  readonly objectKey: string;
  readonly position: number;
}

/**
 * Whether `candidate` replaces `current` as the answer of a line: an output line wins over an error, then
 * the smaller object name wins, then the smaller position. This is a total order, so the choice does not
 * depend on the order in which frames are read (docs/design/journal.md#duplicate-answers).
 */
export function isPreferred(candidate: Claim, current: Claim): boolean {
  const isOutput = candidate.kind === FRAME_KIND.output;
  if (isOutput !== (current.kind === FRAME_KIND.output)) return isOutput;
  if (candidate.objectKey !== current.objectKey) return candidate.objectKey < current.objectKey;
  return candidate.position < current.position;
}
