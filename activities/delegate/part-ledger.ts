import { MAX_CHUNK_ENTRIES } from '../../core/chunks/chunk-size';
import { mayAnswerLater } from '../../core/delegation/line-status';
import type { Range } from '../../core/range';
import type { FrameRef } from '../../storage/journal/journal-store';
import { ChunkLedger, type ChunkLine } from '../execute/chunk-ledger';
import { readPlan } from '../execute/read-plan';
import type { JobInput } from './contract';
import type { DelegateDeps } from './deps';

/** A range of at most as many positions as one segment may hold, with the state of its lines. */
export interface Block extends Range {
  readonly ledger: ChunkLedger;
}

/** The state of every line of a part: whether it is answered, and where its frame is. */
export class PartLedger {
  readonly from: number;
  readonly to: number;
  readonly blocks: readonly Block[];
  /** Statuses of the answers that this attempt has kept. */
  readonly #kept = new Map<number, number>();

  constructor(range: Range, blocks: readonly Block[]) {
    this.from = range.from;
    this.to = range.to;
    this.blocks = blocks;
  }

  has(position: number): boolean {
    return position >= this.from && position < this.to;
  }

  block(position: number): Block {
    const block = this.blocks[Math.floor((position - this.from) / MAX_CHUNK_ENTRIES)];
    if (block === undefined) throw new RangeError(`position ${position} is not in the part`);
    return block;
  }

  isAnswered(position: number): boolean {
    const { ledger, from } = this.block(position);
    return ledger.isAnswered(position - from);
  }

  /** HTTP status of the answer that is kept for a line; null if none is. */
  keptStatus(position: number): number | null {
    const { ledger, from } = this.block(position);
    return this.#kept.get(position) ?? ledger.keptAnswer(position - from)?.header.status ?? null;
  }

  noteKept(position: number, status: number): void {
    this.#kept.set(position, status);
  }

  /** Lines of `range` without an answer, and with one that says that the line has failed. */
  countsIn(range: Range): { open: number; failed: number } {
    const counts = { open: 0, failed: 0 };
    for (let position = range.from; position < range.to; position++) {
      const { ledger, from } = this.block(position);
      if (!ledger.isAnswered(position - from)) counts.open++;
      else if (ledger.isFailed(position - from)) counts.failed++;
    }
    return counts;
  }

  line(position: number): ChunkLine {
    const { ledger, from } = this.block(position);
    return ledger.line(position - from);
  }

  /** Lowest position without an answer; `to` if there is none. */
  get next(): number {
    return this.blocks.find(({ ledger }) => !ledger.allAnswered)?.ledger.next ?? this.to;
  }

  get completed(): number {
    return this.blocks.reduce((sum, { ledger }) => sum + ledger.completed, 0);
  }

  get failed(): number {
    return this.blocks.reduce((sum, { ledger }) => sum + ledger.failed, 0);
  }

  /** Lines without an answer that the provider may answer another time. It cannot express the others. */
  get unanswered(): number {
    let lines = 0;
    for (let position = this.from; position < this.to; position++) {
      if (this.isAnswered(position)) continue;
      const kept = this.keptStatus(position);
      if (kept === null || mayAnswerLater(kept)) lines++;
    }
    return lines;
  }

  /** Counts over the positions of `ranges` below {@link next}; of the whole part by default. */
  countsBeforeNext(ranges: readonly Range[] = [this]): { completed: number; failed: number } {
    const { next } = this;
    const counts = { completed: 0, failed: 0 };
    for (const { from, to } of ranges) {
      const end = Math.min(to, next);
      if (end <= from) continue;
      const { failed } = this.countsIn({ from, to: end });
      counts.failed += failed;
      counts.completed += end - from - failed;
    }
    return counts;
  }
}

/** Reads plan and journal of a part. @throws plan_unreadable, object_store_failed */
export async function openPart(
  { store, journal }: Pick<DelegateDeps, 'store' | 'journal'>,
  { batchId, planNonce, safe, job }: Pick<JobInput, 'batchId' | 'planNonce' | 'safe' | 'job'>,
): Promise<PartLedger> {
  const blocks: Block[] = [];
  for (let from = job.from; from < job.to; from += MAX_CHUNK_ENTRIES) {
    const to = Math.min(job.to, from + MAX_CHUNK_ENTRIES);
    const plan = await readPlan(store, { batchId, planNonce, safeModel: safe }, { from, to });
    const ledger = new ChunkLedger({ from, to }, plan);
    for await (const frame of frames(journal, { batchId, safe, from, to })) ledger.addFrame(frame);
    blocks.push({ from, to, ledger });
  }
  return new PartLedger(job, blocks);
}

function frames(
  journal: DelegateDeps['journal'],
  { batchId, safe, ...range }: Range & { batchId: string; safe: string },
): AsyncIterable<FrameRef> {
  return journal.scan({ batchId, safeModel: safe }, range);
}
