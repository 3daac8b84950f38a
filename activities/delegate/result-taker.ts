import type { JobUsage } from '../../core/delegation/job-counts';
import { positionOfWireId } from '../../core/delegation/job-ids';
import { mayAnswerLater } from '../../core/delegation/line-status';
import { embedAnswer } from '../../core/openai/answer';
import type { LineResult } from '../../providers/provider';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { answerFrame, keptFrame } from '../execute/answer-frames';
import { AnsweredUsage } from './answered-usage';
import type { CustomIds } from './custom-ids';
import type { JobAttempt } from './job-attempt';
import type { RefusedLine } from './line-errors';
import { withoutAccount } from './without-account';
import type { PartJournal } from './part-journal';
import type { PartLedger } from './part-ledger';

/** What {@link ResultTaker} needs. */
export interface ResultTakerParts {
  readonly attempt: JobAttempt;
  readonly row: JobRow;
  readonly ledger: PartLedger;
  readonly journal: PartJournal;
  readonly customIds: CustomIds;
}

/**
 * Joins results to the lines of a part by wire id, never by order. Of two results of one line the first counts,
 * and results of lines that are not of this job are ignored (docs/design/delegation.md#collecting).
 */
export class ResultTaker {
  readonly #o: ResultTakerParts;
  readonly #usage: AnsweredUsage;
  #answered = 0;
  #failed = 0;
  #doubled = 0;
  #foreign = 0;

  constructor(parts: ResultTakerParts) {
    this.#o = parts;
    this.#usage = new AnsweredUsage(parts.row);
  }

  /** Takes one result. Lines that the provider may answer at another time stay open, and the answer is kept. */
  async take(result: LineResult): Promise<void> {
    const { ledger, row } = this.#o;
    const position = positionOfWireId(row.id, result.wireId);
    if (position === null || !ledger.has(position)) {
      this.#foreign++;
      return;
    }
    if (result.kind !== 'answer') return;
    const isFinal = !mayAnswerLater(result.status);
    if (!ledger.isAnswered(position)) return this.#record(position, result, isFinal);
    if (!isFinal) return;
    this.#doubled++;
    this.#usage.add(position, () => embedAnswer(result.status, result.body).usage);
  }

  /** Tokens of the job: by the provider, else by its answers. */
  usage(): JobUsage {
    return this.#usage.orStated(this.#o.row.usage);
  }

  /** Ends a line that the provider has named as a reason to fail the job. */
  async refuse({ wireId, code, param }: RefusedLine): Promise<void> {
    const { ledger, row } = this.#o;
    const position = positionOfWireId(row.id, wireId);
    if (position === null || !ledger.has(position) || ledger.isAnswered(position)) return;
    const error = {
      message: 'The provider refused this request.',
      type: 'invalid_request_error',
      param,
      code: code ?? 'provider_refused',
    };
    const body = Buffer.from(JSON.stringify({ error }));
    await this.#record(position, { status: 400, requestId: null, body }, true);
  }

  /** Tells the metrics what the job has brought. */
  report(costUsd: number | null, unanswered: number): void {
    const { attempt, row } = this.#o;
    const counts = {
      ...{ answered: this.#answered, failed: this.#failed, unanswered },
      ...{ doubled: this.#doubled, foreign: this.#foreign },
    };
    const { provider, model } = row;
    attempt.deps.observer.collected({ provider, model, ...counts, costUsd });
    const log = { jobId: row.id, provider, model, ...counts, costUsd };
    attempt.deps.logger.info(log, 'job collected');
  }

  async #record(
    position: number,
    answer: { status: number; requestId: string | null; body: Buffer },
    isFinal: boolean,
  ): Promise<void> {
    const { attempt, ledger, journal, customIds } = this.#o;
    const line = ledger.line(position);
    const customId = await customIds.of(line);
    const subject = { batchId: attempt.input.batchId, line, customId };
    if (!isFinal) return journal.keep(line, keptFrame(subject, withoutAccount(answer)));
    const frame = answerFrame(subject, answer);
    if (answer.status < 400) this.#answered++;
    else this.#failed++;
    this.#usage.add(position, () => frame.header.usage);
    await journal.record(line, frame);
  }
}
