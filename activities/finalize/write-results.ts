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

/** What {@link writeResults} needs. */
export interface ResultsInput {
  readonly batchId: string;
  readonly answers: AnswerStream;
  /** Planned lines that may lack an answer. */
  readonly uncovered: LineSource;
  /** Lines of models that no gateway serves. */
  readonly unrouted: LineSource;
  readonly output: ResultSink;
  readonly error: ResultSink;
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
 * the error file (docs/design/journal.md#merge). Input order comes from three sorted sources: the answers,
 * the uncovered lines and the unrouted lines. @throws object_corrupt, object_store_failed
 */
export async function writeResults(input: ResultsInput): Promise<ResultTotals> {
  const run = new ResultsRun(input);
  do await run.takeAnswers();
  while (await input.answers.load());
  await run.takeLinesBefore(Number.POSITIVE_INFINITY);
  return run.totals();
}

class ResultsRun {
  readonly #input: ResultsInput;
  #completed = 0;
  #failed = 0;
  #unanswered = 0;
  #unrouted = 0;
  #usage = NO_USAGE;
  readonly #model = new AgreedModel();
  readonly #lines = new LineChecksum();

  constructor(input: ResultsInput) {
    this.#input = input;
  }

  /** Writes all answers that are in memory, and the lines before them. */
  async takeAnswers(): Promise<void> {
    const { answers, uncovered, unrouted, output, error } = this.#input;
    let answerBytes = 0;
    for (;;) {
      answerBytes += this.#copyLines();
      const answer = answers.next();
      if (answer === null) break;
      const { offset } = answer;
      if (uncovered.offset < offset || unrouted.offset < offset) await this.takeLinesBefore(offset);
      if (uncovered.offset === offset) uncovered.skip();
      this.#takeAnswer(answer);
      answerBytes += answer.end - answer.start;
      if (output.isFull) await output.drained();
      if (error.isFull) await error.drained();
    }
    this.#input.onAnswers(answerBytes);
  }

  async takeLinesBefore(offset: number): Promise<void> {
    const { uncovered, unrouted, error } = this.#input;
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
        const id = lineId(this.#input.batchId, line.offset);
        const bytes = errorLine({ lineId: id, customId, code });
        error.writeLine(bytes, 0, bytes.length);
      }
      if (error.isFull) await error.drained();
      if (lines % 1_000 === 0) this.#input.onAnswers(0);
    }
  }

  totals(): ResultTotals {
    this.#addCopied();
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

  /** Copies as many usual answers as possible at once, and returns how many bytes. */
  #copyLines(): number {
    const { answers, uncovered, unrouted, output } = this.#input;
    const limit = Math.min(uncovered.offset, unrouted.offset);
    const bytes = answers.copyLines(limit, this.#model.usualTag, output.room);
    output.wrote(bytes);
    return bytes;
  }

  #addCopied(): void {
    const { lines, checksum, tokens } = this.#input.answers.copied();
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
      this.#input.output.writeLine(window, start + FRAME_HEADER_BYTES, end);
    } else {
      this.#failed++;
      this.#input.error.writeLine(window, start + FRAME_HEADER_BYTES, end);
    }
  }
}
