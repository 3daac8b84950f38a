import { positionOfWireId } from '../../core/delegation/job-ids';
import { readLineFields } from '../../core/openai/member-ranges';
import type { LineResult } from '../../providers/provider';
import type { ObjectReader } from '../../storage/object-store';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { answerFrame } from '../execute/answer-frames';
import type { JobAttempt } from './job-attempt';
import type { RefusedLine } from './line-errors';
import type { PartJournal } from './part-journal';
import type { PartLedger } from './part-ledger';

/** What {@link ResultTaker} needs. */
export interface ResultTakerParts {
  readonly attempt: JobAttempt;
  readonly row: JobRow;
  readonly ledger: PartLedger;
  readonly journal: PartJournal;
  /** The input of the batch. */
  readonly reader: ObjectReader;
}

/**
 * Joins results to the lines of a part by wire id, never by order. Of two results of one line the first counts,
 * and results of lines that are not of this job are ignored (docs/design/delegation.md#collecting).
 */
export class ResultTaker {
  readonly #o: ResultTakerParts;
  #answered = 0;
  #failed = 0;
  #doubled = 0;
  #foreign = 0;

  constructor(parts: ResultTakerParts) {
    this.#o = parts;
  }

  /** Takes one result. Lines that the provider may answer at another time stay open. */
  async take(result: LineResult): Promise<void> {
    const { ledger, row } = this.#o;
    const position = positionOfWireId(row.id, result.wireId);
    if (position === null || !ledger.has(position)) {
      this.#foreign++;
      return;
    }
    if (result.kind !== 'answer' || isRetryable(result.status)) return;
    if (ledger.isAnswered(position)) {
      this.#doubled++;
      return;
    }
    await this.#record(position, result);
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
    await this.#record(position, { status: 400, requestId: null, body });
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
    { status, requestId, body }: { status: number; requestId: string | null; body: Buffer },
  ): Promise<void> {
    const { attempt, ledger, journal, reader } = this.#o;
    const line = ledger.line(position);
    const { offset, length } = line;
    const bytes = reader.readNow?.(offset, length) ?? (await reader.read(offset, length));
    const { customId } = readLineFields(bytes);
    const subject = { batchId: attempt.input.batchId, line, customId };
    const frame = answerFrame(subject, { status, requestId, body });
    if (status < 400) this.#answered++;
    else this.#failed++;
    await journal.record(line, frame);
  }
}

/** Whether another try may succeed: then the line stays open for the next generation or the gateway. */
function isRetryable(status: number): boolean {
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500;
}
