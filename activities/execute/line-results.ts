import { NO_USAGE, type Usage } from '../../core/batch/counts';
import { dropLabelOf, loadSignal, retryCause } from '../../core/dispatch/outcome';
import { retryAfterMs } from '../../core/dispatch/retry-after';
import { FRAME_KIND } from '../../core/journal/frame';
import type { LineErrorCode } from '../../core/openai/result-line';
import type { BackendFailure, BackendOutcome } from '../../inference/backend';
import type { Route } from '../../inference/registry';
import type { RequestEnd, RequestSpan } from '../../platform/tracing/tracing';
import type { EncodedFrame } from './answer-frames';
import { answerFrame, errorFrame } from './answer-frames';
import type { Chunk } from './chunk';
import type { LineCosts } from './chunk-costs';
import type { ChunkLine } from './chunk-ledger';
import type { EmptyQueueLog } from './empty-queue-log';
import type { LineBody } from './line-body';
import type { ExecuteObserver } from './observer';
import { TryJudge, type TryVerdict } from './try-judge';
import type { SentTry, TryResult } from './try-result';

/** What the results of a chunk are made with. */
export interface LineResultsOptions {
  readonly chunk: Chunk;
  readonly route: Route;
  readonly observer: ExecuteObserver;
  readonly costs: LineCosts;
  /** Shared by all chunks of this process. */
  readonly emptyQueues: EmptyQueueLog;
}

/** A try that was sent and has an outcome. */
export interface SettledTry extends SentTry {
  readonly line: ChunkLine;
  readonly customId: string;
  /** What was sent; null only for a line without its file, which is never sent. */
  readonly body: LineBody | null;
  /** Null unless the batch is traced. */
  readonly span: RequestSpan | null;
}

/** Makes results from the outcomes of one chunk's requests, and tells metrics, breaker and limits of them. */
export class LineResults {
  readonly #o: LineResultsOptions;
  readonly #judge: TryJudge;

  constructor(options: LineResultsOptions) {
    this.#o = options;
    this.#judge = new TryJudge(options);
  }

  /** A request is about to be sent. */
  onSending(): void {
    const { observer, chunk } = this.#o;
    observer.requestStarted(chunk.model, chunk.batchId);
  }

  /**
   * A request has ended after so many ms. Reports how long the model server took: without the queue of a gateway, and
   * nothing for a request that it has not seen.
   */
  onOutcome(outcome: BackendOutcome, tookMs: number): void {
    const { chunk, observer, route, emptyQueues } = this.#o;
    if (isPutBack(outcome)) return observer.requestEnded(chunk.model, null);
    const dropped = dropLabelOf(outcome);
    if (dropped !== null) {
      observer.requestEnded(chunk.model, null);
      observer.requestDropped(chunk.model, dropped);
      return;
    }
    const queueMs = outcome.kind === 'answer' ? outcome.queueMs : null;
    observer.requestEnded(chunk.model, Math.max(0, tookMs - (queueMs ?? 0)));
    if (queueMs === null) return;
    observer.requestQueued(chunk.model, Math.min(queueMs, tookMs));
    emptyQueues.onAnswer(route.limiterKey, queueMs);
  }

  /** The result of a try that was sent. */
  of(sent: SettledTry): TryResult {
    const { outcome, how } = sent;
    const { observer, chunk } = this.#o;
    const pauseMs = outcome.kind === 'answer' ? retryAfterMs(outcome.retryAfter, Date.now()) : null;
    how.load.replied(loadSignal(outcome), pauseMs ?? 0);
    const verdict = this.#judge.judge(sent.line, sent);
    sent.span?.end(requestEnd(outcome, verdict));
    // A pause until the deadline means that the line is not sent again.
    if (verdict.kind === 'retry' && verdict.atMs < chunk.deadlineMs) {
      observer.requestRetried(chunk.model, retryCause(outcome));
    }
    if (verdict.kind !== 'final') {
      this.#reportCost(sent, NO_USAGE);
      return verdict;
    }
    const frame = this.#frameOf(sent);
    this.#reportCost(sent, frame.header.usage);
    observer.requestSettled(chunk.model, frame.header.kind === FRAME_KIND.output);
    const queueMs = outcome.kind === 'answer' ? (outcome.queueMs ?? 0) : 0;
    return { kind: 'answered', frame, queueMs };
  }

  /** The result of a line whose file is gone. No model server has seen it. */
  withoutFile(line: ChunkLine, customId: string): TryResult {
    const frame = this.ended(line, customId, 'input_file_not_found');
    return { kind: 'answered', frame, queueMs: 0 };
  }

  /** The error frame of a line that ends without an answer. */
  ended(line: ChunkLine, customId: string, code: LineErrorCode): EncodedFrame {
    this.#o.observer.requestSettled(this.#o.chunk.model, false);
    return this.#errorFrame(line, customId, code);
  }

  #reportCost({ outcome, how }: SettledTry, usage: Usage): void {
    const { costs, observer, chunk } = this.#o;
    const cost = costs.real(outcome, usage);
    if (cost === null) return;
    how.load.used(cost);
    if (cost > 0) observer.served(chunk.tenant, cost);
  }

  #frameOf({ line, customId, outcome, body }: SettledTry): EncodedFrame {
    if (outcome.kind === 'failure') {
      return this.#errorFrame(line, customId, errorCodeOf(outcome.reason));
    }
    const { observer, chunk } = this.#o;
    const embedded = body?.embed(outcome) ?? null;
    if (embedded === null) return this.#errorFrame(line, customId, 'response_too_large');
    const frame = answerFrame({ batchId: chunk.batchId, line, customId }, outcome, embedded);
    if (frame.header.kind === FRAME_KIND.output) observer.tokens(chunk.model, frame.header.usage);
    return frame;
  }

  #errorFrame(line: ChunkLine, customId: string, code: LineErrorCode): EncodedFrame {
    return errorFrame({ batchId: this.#o.chunk.batchId, line, customId }, code);
  }
}

/** Whether no model server has seen the request, for a reason of our own. Its line is put back without a try. */
export function isPutBack(outcome: BackendOutcome): outcome is BackendFailure {
  return outcome.kind === 'failure' && (outcome.reason === 'unsent' || outcome.reason === 'held');
}

/** The outcome of a try, for its span. */
function requestEnd(outcome: BackendOutcome, verdict: TryVerdict): RequestEnd {
  return {
    status: outcome.kind === 'answer' ? outcome.status : null,
    failure: outcome.kind === 'failure' ? outcome.reason : null,
    outcome: verdict.kind === 'final' ? 'answered' : verdict.kind,
    retryAtMs: verdict.kind === 'retry' ? verdict.atMs : null,
  };
}

function errorCodeOf(reason: BackendFailure['reason']): LineErrorCode {
  switch (reason) {
    case 'timeout':
      return 'request_timeout';
    case 'too_large':
      return 'response_too_large';
    case 'connect':
    case 'connection':
    case 'aborted':
    case 'unsent':
    case 'held':
      return 'connection_error';
  }
}
