import { addUsage, NO_USAGE, type RequestCounts, type Usage } from '../../core/batch/counts';
import { lineId } from '../../core/names/ids';
import {
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  frameUsage,
  isUsageClamped,
} from '../../core/journal/frame';
import { answerUsage } from '../../core/openai/answer-usage';
import { errorLine } from '../../core/openai/result-line';
import { LineChecksum } from './line-checksum';
import type { AnswerStream, ChosenAnswer } from '../../storage/journal/journal-store';
import { AgreedModel } from './agreed-model';
import type { ResultSink } from './result-sink';
import type { LineSource } from './unanswered-lines';

/** Where the lines of a batch are written. */
export interface ResultsPlace {
  readonly batchId: string;
  readonly output: ResultSink;
  readonly error: ResultSink;
}

/** Three sources of lines, each in the order of the input. */
export interface LinesInOrder {
  readonly answers: AnswerStream;
  /** Planned lines that may lack an answer. */
  readonly uncovered: LineSource;
  /** Lines of models that no gateway serves. */
  readonly unrouted: LineSource;
  /** Called with the bytes of answers merged since the last call; throws when the attempt must end. */
  onAnswers(answerBytes: number): void;
}

/** What was counted while the lines were written. */
export interface ResultTotals {
  readonly counts: RequestCounts;
  /** Sum over the output lines. */
  readonly usage: Usage;
  /** The model that all lines of the output name; null if they name several. */
  readonly model: string | null;
  /** Planned lines with an answer. */
  readonly answered: number;
  /** Planned lines without one. */
  readonly unanswered: number;
  /** Checksum of all planned lines. */
  readonly lines: LineChecksum;
}

/**
 * Writes every line of a batch once, in input order: output frames to the output file, everything else to
 * the error file (docs/design/journal.md#merge).
 */
export class ResultsRun {
  readonly #place: ResultsPlace;
  #completed = 0;
  #failed = 0;
  #unanswered = 0;
  #unrouted = 0;
  #usage = NO_USAGE;
  readonly #model = new AgreedModel();
  readonly #lines = new LineChecksum();

  constructor(place: ResultsPlace) {
    this.#place = place;
  }

  /**
   * Writes all lines of offsets below `limit`. It may be called again for those behind, with answers that continue these.
   * @throws object_corrupt, object_store_failed
   */
  async take(lines: LinesInOrder, limit = Number.POSITIVE_INFINITY): Promise<void> {
    let isBelow: boolean;
    do isBelow = await this.#takeAnswers(lines, limit);
    while (isBelow && (await lines.answers.load()));
    await this.#takeLinesBefore(limit, lines);
    this.#addCopied(lines.answers);
  }

  totals(): ResultTotals {
    const completed = this.#completed;
    const failed = this.#failed + this.#unrouted;
    const answered = completed + this.#failed;
    const total = answered + this.#unanswered + this.#unrouted;
    return {
      counts: { total, completed, failed },
      usage: this.#usage,
      model: this.#model.name,
      answered,
      unanswered: this.#unanswered,
      lines: this.#lines,
    };
  }

  /** Writes all answers that are in memory, and the lines before them; false if it has reached `limit`. */
  async #takeAnswers(lines: LinesInOrder, limit: number): Promise<boolean> {
    const { answers, uncovered, unrouted } = lines;
    const { output, error } = this.#place;
    let answerBytes = 0;
    let isBelow = true;
    for (;;) {
      answerBytes += this.#copyLines(lines, limit);
      const answer = answers.next();
      isBelow = answer === null || answer.offset < limit;
      if (answer === null || !isBelow) break;
      const { offset } = answer;
      if (uncovered.offset < offset || unrouted.offset < offset) {
        await this.#takeLinesBefore(offset, lines);
      }
      if (uncovered.offset === offset) uncovered.skip();
      this.#takeAnswer(answer);
      answerBytes += answer.end - answer.start;
      if (output.isFull) await output.drained();
      if (error.isFull) await error.drained();
    }
    lines.onAnswers(answerBytes);
    return isBelow;
  }

  async #takeLinesBefore(
    offset: number,
    { uncovered, unrouted, onAnswers }: LinesInOrder,
  ): Promise<void> {
    const { batchId, error } = this.#place;
    for (let lines = 1; ; lines++) {
      const isPlanned = uncovered.offset < unrouted.offset;
      const source = isPlanned ? uncovered : unrouted;
      if (!(source.offset < offset)) return;
      if (!source.isReady) await source.load();
      if (isPlanned) this.#countUnanswered(source.offset);
      else this.#unrouted++;
      const line = source.take();
      if (line !== null) {
        const { customId, code } = line;
        const id = lineId(batchId, line.offset);
        const bytes = errorLine({ lineId: id, customId, code });
        error.writeLine(bytes, 0, bytes.length);
      }
      if (error.isFull) await error.drained();
      if (lines % 1_000 === 0) onAnswers(0);
    }
  }

  /** Copies as many usual answers as possible at once, and returns how many bytes. */
  #copyLines({ answers, uncovered, unrouted }: LinesInOrder, limit: number): number {
    const { output } = this.#place;
    const before = Math.min(limit, uncovered.offset, unrouted.offset);
    const bytes = answers.copyLines(before, this.#model.usualTag, output.room);
    output.wrote(bytes);
    return bytes;
  }

  #addCopied(answers: AnswerStream): void {
    const { lines, checksum, tokens } = answers.copied();
    const [inputTokens = 0, cachedTokens = 0, outputTokens = 0] = tokens;
    const [, , , reasoningTokens = 0, totalTokens = 0] = tokens;
    const usage = { inputTokens, cachedTokens, outputTokens, reasoningTokens, totalTokens };
    this.#completed += lines;
    this.#lines.addSums(...checksum);
    this.#usage = addUsage(this.#usage, usage);
  }

  #countUnanswered(offset: number): void {
    this.#unanswered++;
    this.#lines.add(offset);
  }

  #takeAnswer({ offset, kind, window, start, end }: ChosenAnswer): void {
    this.#lines.add(offset);
    if (kind === FRAME_KIND.output) {
      this.#completed++;
      this.#model.add(window, start, end);
      const usage = isUsageClamped(window, start)
        ? answerUsage(window.subarray(start + FRAME_HEADER_BYTES, end))
        : frameUsage(window, start);
      this.#usage = addUsage(this.#usage, usage);
      this.#place.output.writeLine(window, start + FRAME_HEADER_BYTES, end);
    } else {
      this.#failed++;
      this.#place.error.writeLine(window, start + FRAME_HEADER_BYTES, end);
    }
  }
}
