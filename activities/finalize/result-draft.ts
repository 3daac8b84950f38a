import type { Manifest, ManifestSeal } from '../../core/journal/manifest';
import { parseSealKey } from '../../core/names/object-names';
import type { JournalStore, SealInfo } from '../../storage/journal/journal-store';
import { NO_LINES } from './line-sources';
import { type BatchPlan, plannedOffsets } from './plan-offsets';
import { uncoveredRanges } from './unanswered-ranges';
import { abandonFiles, beginFiles, type UnfinishedFiles } from './unfinished-files';

/** What {@link ResultDraft.begin} needs. */
export interface DraftInput {
  readonly journal: Pick<JournalStore, 'listSeals' | 'openAnswers'>;
  readonly plan: BatchPlan;
  readonly inputKey: string;
  readonly tenantFolder: string;
  /** With fewer bytes of answers, a draft does not pay off. */
  readonly leastBytes: number;
  /** Throws when the draft is given up. */
  check(): void;
}

/** The least part of the input that a draft must cover. */
const LEAST_SHARE = 0.5;

/**
 * Result files of which the first part is written while the last answers are awaited: all lines before the first one
 * that no seal answers (docs/design/batch-path.md#the-draft). What is written holds for every manifest that has the same
 * seals and further ones for the rest of the plan.
 */
export class ResultDraft {
  readonly #input: DraftInput;
  #seals: readonly SealInfo[];
  /** Lines of smaller offsets are written. */
  #limit: number;
  #files: UnfinishedFiles;

  private constructor(input: DraftInput, { seals, limit }: Sealed, files: UnfinishedFiles) {
    this.#input = input;
    this.#seals = seals;
    this.#limit = limit;
    this.#files = files;
  }

  /** Null if it would not pay off yet. @throws object_corrupt, plan_unreadable, object_store_failed, and what `check` throws */
  static async begin(input: DraftInput): Promise<ResultDraft | null> {
    const { journal, plan, check, tenantFolder } = input;
    const { store, batchId } = plan;
    const sealed = await findSealed(input);
    if (sealed === null) return null;
    const answers = await journal.openAnswers(batchId, sealed.seals, check);
    const files = await beginFiles({ store, batchId, tenantFolder }, answers);
    const draft = new ResultDraft(input, sealed, files);
    await draft.#orAbandon(() => draft.#takeLines());
    return draft;
  }

  /** Writes the lines that have been sealed since. If it fails, the draft is abandoned. @throws as `begin` */
  async advance(): Promise<void> {
    await this.#orAbandon(async () => {
      const sealed = await findSealed(this.#input);
      const further = sealed === null ? null : this.#beside(sealed.seals);
      if (sealed === null || further === null || sealed.limit <= this.#limit) return;
      await this.#continueWith(further, this.#input.check);
      ({ seals: this.#seals, limit: this.#limit } = sealed);
      await this.#takeLines();
    });
  }

  /**
   * The files, to be continued with the answers that the draft has not taken. Null if the manifest does not continue it;
   * it is abandoned then. Call it once. @throws object_corrupt, object_store_failed
   */
  async goOn({ seals, cause }: Manifest, check: () => void): Promise<UnfinishedFiles | null> {
    const further = cause === null ? this.#beside(seals) : null;
    if (further === null) {
      await this.abandon(new Error('the manifest has other seals'));
      return null;
    }
    await this.#orAbandon(() => this.#continueWith(further, check));
    return this.#files;
  }

  /** Keeps nothing of it. */
  async abandon(reason: unknown): Promise<void> {
    await abandonFiles(this.#files, reason);
    await this.#files.answers.close();
  }

  async #orAbandon(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (failure) {
      await this.abandon(failure);
      throw failure;
    }
  }

  async #takeLines(): Promise<void> {
    const { answers, run } = this.#files;
    const lines = { answers, uncovered: NO_LINES, unrouted: NO_LINES };
    await run.take({ ...lines, onAnswers: this.#input.check }, this.#limit);
  }

  async #continueWith(further: readonly ManifestSeal[], check: () => void): Promise<void> {
    const answers = await this.#files.answers.continueWith(further, check);
    this.#files = { ...this.#files, answers };
  }

  /** Which of these seals are not in the draft; null if they may answer a line that it has written otherwise. */
  #beside<Seal extends ManifestSeal>(seals: readonly Seal[]): Seal[] | null {
    const sizes = new Map(seals.map(({ key, size }) => [key, size]));
    const hasAll = this.#seals.every(({ key, size }) => sizes.get(key) === size);
    for (const { key } of this.#seals) sizes.delete(key);
    const further = seals.filter(({ key }) => sizes.has(key));
    return hasAll && further.every((seal) => this.#isBeside(seal)) ? further : null;
  }

  /** Whether a seal answers no position of the plan that the draft has an answer to. */
  #isBeside({ key }: { readonly key: string }): boolean {
    const name = parseSealKey(key);
    if (name === null) return false;
    const { safeModel, range } = name;
    if (range === null) return false;
    const own = this.#seals.filter((seal) => seal.safeModel === safeModel);
    return own.every((seal) => {
      return seal.range === null || seal.range.to <= range.from || range.to <= seal.range.from;
    });
  }
}

/** The seals of a batch, and the offset of the first line that they do not answer. */
interface Sealed {
  readonly seals: readonly SealInfo[];
  readonly limit: number;
}

/** Null if a draft would not pay off, or if all lines are answered. */
async function findSealed(input: DraftInput): Promise<Sealed | null> {
  const { journal, plan, leastBytes } = input;
  const { map, store, batchId } = plan;
  if (Object.keys(map.unrouted).length > 0) return null;
  const seals = await journal.listSeals(batchId);
  const bytes = seals.reduce((sum, { size }) => sum + size, 0);
  if (bytes < leastBytes || seals.some(({ range }) => range === null)) return null;
  const uncovered = uncoveredRanges(map.entries, seals);
  const [[limit], file] = await Promise.all([
    plannedOffsets(plan, uncovered),
    store.head(input.inputKey),
  ]);
  if (limit === undefined || file === null) return null;
  return limit < LEAST_SHARE * file.size ? null : { seals, limit };
}
