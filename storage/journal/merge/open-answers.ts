import type { ManifestSeal } from '../../../core/journal/manifest';
import type { ObjectStore } from '../../object-store';
import type { AnswerStream } from '../journal-store';
import { FrameMerge } from './frame-merge';
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
export async function openAnswers(input: OpenAnswersInput): Promise<AnswerStream> {
  const { store, seals, programs } = input;
  const { sources, scratchKeys } = await limitSources(input, await probeSeals(store, seals));
  const bytes = sources.reduce((sum, { start, end }) => sum + end - start, 0);
  const program = bytes < LEAST_BYTES ? null : programs.take();
  const merge = new FrameMerge(store, sources, program);
  return {
    copyLines: (limit, tag, into) => merge.copyLines(limit, tag, into),
    lineMemory: merge.lineMemory,
    copied: () => merge.copied(),
    next: () => merge.next(),
    load: () => merge.load(),
    close: async () => {
      await merge.close();
      // Of a merge that failed, something may still be read into the memory.
      if (program !== null && merge.isOver) programs.giveBack(program);
      // The sweep removes what cannot be deleted now.
      for (const key of scratchKeys) await store.delete(key).catch(() => undefined);
    },
  };
}
