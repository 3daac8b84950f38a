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
import { LineTally } from './line-tally';
import type { AnswerStream, ChosenAnswer } from '../../storage/journal/journal-store';
import { StableModel } from './stable-model';
import type { ResultSink } from './result-sink';
import type { LineSource } from './unanswered';

/** What the merge of a batch into its files takes. */
export interface ResultsInput {
  readonly batchId: string;
  readonly answers: AnswerStream;
  /** Planned lines that may lack an answer. */
  readonly open: LineSource;
  /** Lines of models that no backend serves. */
  readonly unrouted: LineSource;
  readonly output: ResultSink;
  readonly error: ResultSink;
  /** Told how many bytes of answers came; throws when the activity is cancelled. */
  progress(answerBytes: number): void;
}

/** What was counted on the way. */
export interface ResultTotals {
  readonly counts: RequestCounts;
  /** Sum over the output lines. */
  readonly usage: Usage;
  /** The model that the output's answers name, where all name the same; else null. */
  readonly model: string | null;
  /** Lines that came from frames. */
  readonly answered: number;
  /** Planned lines that came without one. */
  readonly unanswered: number;
  /** All of these. */
  readonly lines: LineTally;
}

/**
 * Writes every line of a batch once, in input order: output frames to the output file, everything
 * else to the error file (execution §2, contract §2.5). @throws object_corrupt, object_store_failed
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
  readonly #model = new StableModel();
  readonly #lines = new LineTally();

  constructor(input: ResultsInput) {
    this.#input = input;
  }

  /** All answers that need no further read. */
  async takeAnswers(): Promise<void> {
    const { answers, open, unrouted, output, error } = this.#input;
    let answerBytes = 0;
    for (let answer = answers.next(); answer !== null; answer = answers.next()) {
      const { offset } = answer;
      if (open.offset < offset || unrouted.offset < offset) await this.takeLinesBefore(offset);
      if (open.offset === offset) open.skip();
      this.#takeAnswer(answer);
      answerBytes += answer.end - answer.start;
      if (output.isFull) await output.drained();
      if (error.isFull) await error.drained();
    }
    this.#input.progress(answerBytes);
  }

  async takeLinesBefore(offset: number): Promise<void> {
    const { open, unrouted, error } = this.#input;
    for (let lines = 1; ; lines++) {
      const isOpen = open.offset < unrouted.offset;
      const source = isOpen ? open : unrouted;
      if (!(source.offset < offset)) return;
      if (!source.isReady) await source.load();
      if (isOpen) this.#countUnanswered(source.offset);
      else this.#unrouted++;
      const line = source.take();
      if (line !== null) {
        const { customId, code } = line;
        const id = lineId(this.#input.batchId, line.offset);
        const bytes = errorLine({ lineId: id, customId, code });
        error.writeLine(bytes, 0, bytes.length);
      }
      if (error.isFull) await error.drained();
      if (lines % 1_000 === 0) this.#input.progress(0);
    }
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

  #countUnanswered(offset: number): void {
    this.#unanswered++;
    this.#lines.add(offset);
  }

  #takeAnswer({ offset, kind, window, start, end }: ChosenAnswer): void {
    this.#lines.add(offset);
    if (kind === FRAME_KIND.output) {
      this.#completed++;
      this.#model.see(window, start, end);
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
