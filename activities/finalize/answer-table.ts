import type { FrameKind } from '../../core/journal/frame';
import { isPreferred, type Claim } from '../../core/journal/merge';
import type { FrameRef, SealedFrame } from '../../storage/journal/journal-store';
import { indexOfOffset } from './plan-offsets';

/**
 * The best answer found for each of many lines, in 25 bytes per line
 * (docs/design/journal.md#duplicate-answers). Iterates over the answers in order of offset.
 */
export class AnswerTable implements Iterable<SealedFrame> {
  readonly #offsets: Float64Array;
  /** 0 means no answer yet. */
  readonly #kinds: Uint8Array;
  readonly #objects: Uint32Array;
  readonly #positions: Float64Array;
  readonly #lengths: Uint32Array;
  readonly #keys: string[] = [];
  #count = 0;

  /** @param offsets of the lines, ascending */
  constructor(offsets: Float64Array) {
    this.#offsets = offsets;
    this.#kinds = new Uint8Array(offsets.length);
    this.#objects = new Uint32Array(offsets.length);
    this.#positions = new Float64Array(offsets.length);
    this.#lengths = new Uint32Array(offsets.length);
  }

  /** Number of lines with an answer. */
  get length(): number {
    return this.#count;
  }

  /** Keeps an answer unless a better one is known. Answers of other lines are ignored. */
  offer({ header, objectKey, position, byteLength }: FrameRef): void {
    const index = indexOfOffset(this.#offsets, header.offset);
    if (index === -1) return;
    const known = this.#claimOf(index);
    const claim = { kind: header.kind, objectKey, position };
    if (known !== null && !isPreferred(claim, known)) return;
    if (known === null) this.#count++;
    this.#kinds[index] = header.kind;
    this.#objects[index] = this.#numberOf(objectKey);
    this.#positions[index] = position;
    this.#lengths[index] = byteLength;
  }

  *[Symbol.iterator](): Generator<SealedFrame> {
    for (let index = 0; index < this.#offsets.length; index++) {
      const claim = this.#claimOf(index);
      if (claim === null) continue;
      const { kind, objectKey, position } = claim;
      const header = { offset: this.#offsets[index] ?? 0, kind };
      yield { header, objectKey, position, byteLength: this.#lengths[index] ?? 0 };
    }
  }

  #claimOf(index: number): Claim | null {
    const kind = this.#kinds[index] ?? 0;
    if (kind === 0) return null;
    const objectKey = this.#keys[this.#objects[index] ?? 0] ?? '';
    return { kind: kind as FrameKind, objectKey, position: this.#positions[index] ?? 0 };
  }

  /** Frames are offered object by object, so the key is nearly always the last one. */
  #numberOf(key: string): number {
    const last = this.#keys.length - 1;
    return this.#keys[last] === key ? last : this.#keys.push(key) - 1;
  }
}
