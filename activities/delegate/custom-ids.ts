import { setImmediate as turn } from 'node:timers/promises';
import { readLineFields } from '../../core/openai/member-ranges';
import type { ObjectReader } from '../../storage/object-store';
import type { ChunkLine } from '../execute/chunk-ledger';
import type { Heartbeat } from '../runtime/heartbeat';
import type { PartLedger } from './part-ledger';

/** Results that jump in the input before the ids of their block are read ahead: a few are cheaper read alone. */
const FEW_JUMPS = 64;
/** A reader serves the lines that follow the last one from memory. */
const NEAR_LINES = 64;
/** Lines between two turns of the event loop, in which heartbeats get through. */
const LINES_PER_TURN = 256;
/** Characters of ids that a part keeps. Ids of usual length, 20 characters, take 1 MB in a part of 50,000 lines. */
const MAX_KEPT_CHARS = 4 * 1024 * 1024;

/** What {@link CustomIds} reads. */
export interface CustomIdSource {
  readonly ledger: PartLedger;
  /** The input of the batch. */
  readonly reader: ObjectReader;
  readonly heartbeat: Heartbeat;
}

/**
 * The `custom_id` of lines whose results come in any order. A read for each result would cost as much again as all
 * other work on it. So when results jump, the ids of a whole block are read once, in the order of the input
 * (docs/design/delegation.md#collecting).
 */
export class CustomIds {
  readonly #source: CustomIdSource;
  /** Reads that jumped, and then the ids, by the first position of a block. */
  readonly #blocks = new Map<number, { jumps: number; ids: Promise<Map<number, string>> | null }>();
  #lastPosition = -1;
  #keptChars = 0;

  constructor(source: CustomIdSource) {
    this.#source = source;
  }

  /** @throws object_store_failed */
  async of(line: ChunkLine): Promise<string> {
    const { position } = line;
    const block = this.#blockAt(position);
    const isNear = position > this.#lastPosition && position <= this.#lastPosition + NEAR_LINES;
    this.#lastPosition = position;
    if (!isNear) block.jumps++;
    if (block.jumps > FEW_JUMPS) block.ids ??= this.#readBlock(position);
    return (await block.ids)?.get(position) ?? this.#read(line);
  }

  #blockAt(position: number) {
    const { from } = this.#source.ledger.block(position);
    const block = this.#blocks.get(from) ?? { jumps: 0, ids: null };
    this.#blocks.set(from, block);
    return block;
  }

  /** Ids of the block's lines without an answer, as many as may be kept. */
  async #readBlock(inside: number): Promise<Map<number, string>> {
    const { ledger, heartbeat } = this.#source;
    const { from, to } = ledger.block(inside);
    const ids = new Map<number, string>();
    for (let position = from; position < to && this.#keptChars < MAX_KEPT_CHARS; position++) {
      if (position % LINES_PER_TURN === 0) {
        await turn();
        heartbeat.check();
      }
      if (ledger.isAnswered(position)) continue;
      const id = await this.#read(ledger.line(position));
      this.#keptChars += id.length;
      ids.set(position, id);
    }
    return ids;
  }

  async #read({ offset, length }: ChunkLine): Promise<string> {
    const { reader } = this.#source;
    const bytes = reader.readNow?.(offset, length) ?? (await reader.read(offset, length));
    return readLineFields(bytes).customId;
  }
}
