import { FRAME_HEADER_BYTES, frameModelTag } from '../../core/journal/frame';
import { answerModel } from '../../core/openai/answer-model';

/**
 * The model that answers name, as long as they all name the same (contract §6). Answers that name none
 * have no say.
 */
export class StableModel {
  #tag = 0;
  #name: string | null = null;

  /** Null before the first answer that names one, and for good once two disagree. */
  get name(): string | null {
    return this.#name;
  }

  /** Looks at the output frame `window[start, end)`: parses the first, compares the others by tag. */
  see(window: Buffer, start: number, end: number): void {
    const tag = frameModelTag(window, start);
    if (tag === 0 || tag === this.#tag) return;
    const isFirst = this.#tag === 0;
    this.#name = isFirst ? answerModel(window.subarray(start + FRAME_HEADER_BYTES, end)) : null;
    if (isFirst) this.#tag = tag;
  }
}
