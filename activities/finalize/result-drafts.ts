import { readModelMap } from './batch-objects';
import type { FinalizeDeps } from './deps';
import { ResultDraft } from './result-draft';

/** What a draft needs. */
export interface ResultDraftsDeps extends Pick<FinalizeDeps, 'store' | 'journal' | 'tenantHash'> {
  /** Fewer bytes of answers are merged before a draft would pay off. */
  readonly leastBytes?: number;
}

const LEAST_BYTES = 4 * 1024 * 1024;

/** The batch of a draft. */
export interface DraftedBatch {
  readonly batchId: string;
  readonly tenant: string;
  readonly inputKey: string;
}

/** The draft of a process: at most one, because it takes as much memory as a merge (docs/design/batch-path.md#the-draft). */
export class ResultDrafts {
  readonly #deps: ResultDraftsDeps;
  #open: OpenDraft | null = null;

  constructor(deps: ResultDraftsDeps) {
    this.#deps = deps;
  }

  /** Begins a draft, or goes on with it as far as lines are sealed by now. Nothing if the process has another one. */
  advance(batch: DraftedBatch): void {
    this.#open ??= new OpenDraft(this.#deps, batch);
    if (this.#open.batchId === batch.batchId) this.#open.advance();
  }

  /** Waits for the draft of a batch and gives it to the caller; null if there is none. */
  async take(batchId: string): Promise<ResultDraft | null> {
    return (await this.#remove(batchId)?.draft) ?? null;
  }

  /** Gives up the draft of a batch, if it was not taken. Does not wait. */
  drop(batchId: string): void {
    this.#remove(batchId)?.drop();
  }

  #remove(batchId: string): OpenDraft | null {
    if (this.#open?.batchId !== batchId) return null;
    const open = this.#open;
    this.#open = null;
    return open;
  }
}

/** The draft of one batch, which is worked on in the background. */
class OpenDraft {
  readonly #deps: ResultDraftsDeps;
  readonly #batch: DraftedBatch;
  #draft: Promise<ResultDraft | null> = Promise.resolve(null);
  #isQueued = false;
  #isOver = false;

  constructor(deps: ResultDraftsDeps, batch: DraftedBatch) {
    this.#deps = deps;
    this.#batch = batch;
  }

  get batchId(): string {
    return this.#batch.batchId;
  }

  /** Null if there is none, or it has failed. Never rejects. */
  get draft(): Promise<ResultDraft | null> {
    return this.#draft;
  }

  advance(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.#draft = this.#draft.then((draft) => this.#advanced(draft));
  }

  drop(): void {
    this.#isOver = true;
    const reason = new Error('the batch is not ended here');
    this.#draft.then((draft) => draft?.abandon(reason)).catch(() => undefined);
  }

  async #advanced(draft: ResultDraft | null): Promise<ResultDraft | null> {
    this.#isQueued = false;
    if (this.#isOver) return draft;
    try {
      if (draft === null) return await this.#begin();
      await draft.advance();
      return draft;
    } catch {
      // A draft only saves time. If something is wrong, finalization finds it.
      this.#isOver = true;
      return null;
    }
  }

  async #begin(): Promise<ResultDraft | null> {
    const { store, journal, tenantHash, leastBytes = LEAST_BYTES } = this.#deps;
    const { batchId, tenant, inputKey } = this.#batch;
    const plan = { store, batchId, map: await readModelMap(store, batchId) };
    const tenantFolder = tenantHash(tenant);
    const check = (): void => {
      if (this.#isOver) throw new Error('the draft is given up');
    };
    return ResultDraft.begin({ journal, plan, inputKey, tenantFolder, leastBytes, check });
  }
}
