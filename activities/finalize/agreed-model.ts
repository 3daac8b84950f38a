import { ANY_TAG } from '../../core/journal/merge-memory';
import { FRAME_HEADER_BYTES, frameModelTag } from '../../core/journal/frame';
import { answerModel } from '../../core/openai/answer-model';

/** The model that all answers name. Answers without a model are ignored. */
export class AgreedModel {
  #tag = 0;
  #name: string | null = null;

  /** Null before the first answer that names a model, and null forever once two answers disagree. */
  get name(): string | null {
    return this.#name;
  }

  /** Frames of this tag need not be added: they change nothing. */
  get usualTag(): number {
    return this.#tag !== 0 && this.#name === null ? ANY_TAG : this.#tag;
  }

  /**
   * Adds the output frame `window[start, end)`. Only the first answer is parsed; the others are compared
   * by the tag in their frame header, which is much cheaper.
   */
  add(window: Buffer, start: number, end: number): void {
    const tag = frameModelTag(window, start);
    if (tag === 0 || tag === this.#tag) return;
    const isFirst = this.#tag === 0;
    this.#name = isFirst ? answerModel(window.subarray(start + FRAME_HEADER_BYTES, end)) : null;
    if (isFirst) this.#tag = tag;
  }
}
