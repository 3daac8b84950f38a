import type { ManifestSeal } from '../../../core/journal/manifest';
import type { ObjectStore } from '../../object-store';
import type { MergeProgram } from '../../../core/journal/merge-program';
import type { SealedAnswers } from '../journal-store';
import { FrameMerge } from './frame-merge';
import type { FrameSource } from './frame-source';
import type { KeptProgram } from './kept-program';
import { limitSources } from './limit-sources';
import { probeSeals } from './probe-seals';

/** A smaller merge ends before a program for it would pay off. */
const LEAST_BYTES = 4 * 1024 * 1024;

/** What a merge reads. */
export interface OpenAnswersInput {
  readonly store: ObjectStore;
  readonly batchId: string;
  readonly seals: readonly ManifestSeal[];
  /** Where large merges get their program. */
  readonly programs: KeptProgram;
  /** Called between groups of seals; throws to abort. */
  check(): void;
}

/**
 * Merges the seals of a manifest into one stream of chosen answers (docs/design/journal.md#merge). Works
 * over any object store. Closing deletes the scratch objects of a merge in two passes.
 * Close it once, when nothing uses its `lineMemory` any more.
 * @throws object_corrupt, object_store_failed
 */
export async function openAnswers(input: OpenAnswersInput): Promise<SealedAnswers> {
  const { store, seals, programs } = input;
  const { sources, scratchKeys } = await limitSources(input, await probeSeals(store, seals));
  const bytes = sources.reduce((sum, { start, end }) => sum + end - start, 0);
  const program = bytes < LEAST_BYTES ? null : programs.take();
  const merge = new FrameMerge(store, sources, program);
  return answersOf(input, { merge, program, scratchKeys });
}

/** A merge, and what is left to do when it ends. */
interface OpenMerge {
  readonly merge: FrameMerge;
  /** The program in whose memory lines may lie; it is given back. */
  readonly program: MergeProgram | null;
  readonly scratchKeys: readonly string[];
}

function answersOf(input: OpenAnswersInput, open: OpenMerge): SealedAnswers {
  const { merge, program, scratchKeys } = open;
  const { store, programs } = input;
  return {
    copyLines: (limit, tag, into) => merge.copyLines(limit, tag, into),
    lineMemory: merge.lineMemory,
    copied: () => merge.copied(),
    next: () => merge.next(),
    load: () => merge.load(),
    continueWith: (seals, check) => continued({ ...input, seals, check }, open),
    close: async () => {
      await merge.close();
      // Of a merge that failed, something may still be read into the memory.
      if (program !== null && merge.isOver) programs.giveBack(program);
      // The sweep removes what cannot be deleted now.
      for (const key of scratchKeys) await store.delete(key).catch(() => undefined);
    },
  };
}

/** One merge of the rest of another one and of further seals. Lines are still in the memory of the other one's program. */
async function continued(
  input: OpenAnswersInput,
  { merge, program, scratchKeys }: OpenMerge,
): Promise<SealedAnswers> {
  const rest = merge.rest();
  await merge.close();
  const further = await probeSeals(input.store, input.seals);
  const limited = await limitSources(input, [...rest, ...further].sort(byRank));
  return answersOf(input, {
    merge: new FrameMerge(input.store, limited.sources),
    program,
    scratchKeys: [...scratchKeys, ...limited.scratchKeys],
  });
}

function byRank(a: FrameSource, b: FrameSource): number {
  return a.rankKey < b.rankKey ? -1 : 1;
}
