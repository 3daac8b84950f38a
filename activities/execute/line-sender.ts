import { NO_USAGE, type Usage } from '../../core/batch/counts';
import { dropLabelOf, loadSignal, retryCause } from '../../core/dispatch/outcome';
import { retryAfterMs } from '../../core/dispatch/retry-after';
import { isNightshiftError } from '../../core/errors';
import { FRAME_KIND } from '../../core/journal/frame';
import { lineId } from '../../core/names/ids';
import { readLineFields } from '../../core/openai/member-ranges';
import type { LineErrorCode } from '../../core/openai/result-line';
import type { BackendFailure, BackendOutcome } from '../../inference/backend';
import type { MemoryBudget, Reservation } from '../../inference/memory-budget';
import type { Route } from '../../inference/registry';
import type { RequestEnd, RequestSpan, RequestSpans } from '../../platform/tracing/tracing';
import type { ObjectReader } from '../../storage/object-store';
import type { EncodedFrame } from './answer-frames';
import { answerFrame, errorFrame } from './answer-frames';
import type { Chunk } from './chunk';
import type { LineCosts } from './chunk-costs';
import type { ChunkLine } from './chunk-ledger';
import type { EmptyQueueLog } from './empty-queue-log';
import type { GatewayHeaders } from './gateway-headers';
import type { LineBodies, LineBody } from './line-body';
import type { ExecuteObserver } from './observer';
import type { ReadBlocks } from './read-blocks';
import { requestTimeoutOf } from './request-timeout';
import type { SentTry, TryOptions, TryResult } from './line-try';
import type { TryVerdict } from './try-judge';
import { TryJudge } from './try-judge';

/** What all tries of a chunk share. */
export interface LineSenderOptions {
  readonly chunk: Chunk;
  readonly route: Route;
  readonly input: ObjectReader;
  readonly memory: MemoryBudget;
  readonly observer: ExecuteObserver;
  readonly blocks: ReadBlocks;
  /** Null unless the batch is traced. */
  readonly spans: RequestSpans | null;
  readonly headers: GatewayHeaders;
  readonly costs: LineCosts;
  readonly bodies: LineBodies;
  /** Shared by all chunks of this process. */
  readonly emptyQueues: EmptyQueueLog;
}

/**
 * Makes one try of one line: reads its bytes, sends its `body`, and makes the result line from the answer. Permits, time slices and ends are the caller's concern.
 */
export class LineSender {
  readonly #options: LineSenderOptions;
  readonly #judge: TryJudge;

  constructor(options: LineSenderOptions) {
    this.#options = options;
    this.#judge = new TryJudge(options);
  }

  /** Makes one try. Rejects if the line could not be read or sent; such a try does not count. */
  async try(line: ChunkLine, how: TryOptions): Promise<TryResult> {
    const { input, memory, blocks, route, bodies, chunk } = this.#options;
    const block = blocks.take(line.length);
    let reservation: Reservation | null = null;
    let body: LineBody | null = null;
    try {
      const { offset, length } = line;
      const bytes =
        input.readNow?.(offset, length, block) ?? (await input.read(offset, length, block));
      const { bodyStart, bodyEnd, customId } = readLineFields(bytes);
      body = bodies.of(bytes.subarray(bodyStart, bodyEnd), lineId(chunk.batchId, offset));
      if (body === null) return this.#withoutFile(line, customId, how);
      const { memoryBytes } = body;
      reservation =
        memory.tryReserve(memoryBytes) ?? (await memory.reserve(memoryBytes, how.signal));
      if (!how.maySend()) {
        blocks.giveBack(block);
        return this.#unsent(how);
      }
      const sentMs = Date.now();
      const limit = how.load.sent();
      const span = this.#beginSpan(line);
      const outcome = await this.#send(line, body, { how, reservation, span });
      if (isPutBack(outcome)) {
        how.load.used(0);
        span?.end({ status: null, failure: outcome.reason, outcome: 'retry', retryAtMs: null });
        if (body.failure === null) return this.#unsent(how);
        if (!isNightshiftError(body.failure, 'object_missing')) throw body.failure;
        return this.#withoutFile(line, customId, how);
      }
      // Only an answer proves that the connection no longer reads the body.
      if (outcome.kind === 'answer') blocks.giveBack(block);
      return this.#settle(line, customId, { outcome, how, sentMs, limit, span, body });
    } catch (error) {
      // The try shows nothing about the gateway, so the breaker may send another probe.
      if (how.probe) route.breaker.onProbeLost(Date.now());
      throw error;
    } finally {
      body?.close();
      reservation?.release();
    }
  }

  /** The error frame of a poison line, which is not sent any more. */
  async poisonAnswer(line: ChunkLine): Promise<EncodedFrame> {
    const { input, observer, chunk } = this.#options;
    const bytes = await input.read(line.offset, line.length);
    observer.requestSettled(chunk.model, false);
    return this.#errorFrame(line, readLineFields(bytes).customId, 'internal_error');
  }

  /** Puts a line back at once. The run decides whether it may still be sent. */
  #unsent({ probe }: TryOptions): TryResult {
    const nowMs = Date.now();
    if (probe) this.#options.route.breaker.onProbeLost(nowMs);
    return { kind: 'retry', atMs: nowMs };
  }

  /** Ends a line whose file is gone. No model server has seen it. */
  #withoutFile(line: ChunkLine, customId: string, { probe, load }: TryOptions): TryResult {
    const { observer, chunk, route } = this.#options;
    if (probe) route.breaker.onProbeLost(Date.now());
    load.used(0);
    observer.requestSettled(chunk.model, false);
    const frame = this.#errorFrame(line, customId, 'input_file_not_found');
    return { kind: 'answered', frame, queueMs: 0 };
  }

  #beginSpan(line: ChunkLine): RequestSpan | null {
    const { spans, chunk } = this.#options;
    if (spans === null) return null;
    const { offset, tries } = line;
    return spans.begin({ id: lineId(chunk.batchId, offset), offset, tries });
  }

  #settle(line: ChunkLine, customId: string, sent: TracedTry): TryResult {
    const { outcome, how } = sent;
    const { observer, chunk } = this.#options;
    const pauseMs = outcome.kind === 'answer' ? retryAfterMs(outcome.retryAfter, Date.now()) : null;
    how.load.replied(loadSignal(outcome), pauseMs ?? 0);
    const verdict = this.#judge.judge(line, sent);
    sent.span?.end(requestEnd(outcome, verdict));
    // A pause until the deadline means that the line is not sent again.
    if (verdict.kind === 'retry' && verdict.atMs < chunk.deadlineMs) {
      observer.requestRetried(chunk.model, retryCause(outcome));
    }
    if (verdict.kind !== 'final') {
      this.#reportCost(sent, NO_USAGE);
      return verdict;
    }
    const frame = this.#frameOf(line, customId, sent);
    this.#reportCost(sent, frame.header.usage);
    observer.requestSettled(chunk.model, frame.header.kind === FRAME_KIND.output);
    const queueMs = outcome.kind === 'answer' ? (outcome.queueMs ?? 0) : 0;
    return { kind: 'answered', frame, queueMs };
  }

  #reportCost({ outcome, how }: TracedTry, usage: Usage): void {
    const { costs, observer, chunk } = this.#options;
    const cost = costs.real(outcome, usage);
    if (cost === null) return;
    how.load.used(cost);
    if (cost > 0) observer.served(chunk.tenant, cost);
  }

  #frameOf(line: ChunkLine, customId: string, { outcome, body }: TracedTry): EncodedFrame {
    if (outcome.kind === 'failure') {
      return this.#errorFrame(line, customId, errorCodeOf(outcome.reason));
    }
    const { observer, chunk } = this.#options;
    const embedded = body.embed(outcome);
    if (embedded === null) return this.#errorFrame(line, customId, 'response_too_large');
    const frame = answerFrame({ batchId: chunk.batchId, line, customId }, outcome, embedded);
    if (frame.header.kind === FRAME_KIND.output) observer.tokens(chunk.model, frame.header.usage);
    return frame;
  }

  #errorFrame(line: ChunkLine, customId: string, code: LineErrorCode): EncodedFrame {
    return errorFrame({ batchId: this.#options.chunk.batchId, line, customId }, code);
  }

  async #send(
    line: ChunkLine,
    { content, accept }: LineBody,
    { how, reservation, span }: Sending,
  ): Promise<BackendOutcome> {
    const { chunk, route, observer, headers } = this.#options;
    const given = headers.of(line);
    const startedMs = performance.now();
    observer.requestStarted(chunk.model, chunk.batchId);
    const outcome = await route.backend.send(
      {
        path: chunk.endpoint,
        body: content,
        accept,
        timeoutMs: requestTimeoutOf(route.gateway, chunk.endpoint),
        requestId: lineId(chunk.batchId, line.offset),
        deadlineMs: chunk.deadlineMs,
        headers: span === null ? given : { ...given, ...span.headers },
        onBytes: (byteLength) => reservation.grow(byteLength),
        maySend: how.maySend,
        leaving: how.leaving,
      },
      how.signal,
    );
    this.#observeEnd(outcome, performance.now() - startedMs);
    return outcome;
  }

  /**
   * Reports how long the model server took: without the queue of a gateway, and nothing for a request that it has
   * not seen.
   */
  #observeEnd(outcome: BackendOutcome, tookMs: number): void {
    const { chunk, observer, route, emptyQueues } = this.#options;
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
}

/** Whether no model server has seen the request, for a reason of our own. Its line is put back without a try. */
function isPutBack(outcome: BackendOutcome): outcome is BackendFailure {
  return outcome.kind === 'failure' && (outcome.reason === 'unsent' || outcome.reason === 'held');
}

/** A try that was sent. */
interface TracedTry extends SentTry {
  readonly body: LineBody;
  /** Null unless the batch is traced. */
  readonly span: RequestSpan | null;
}

/** What one try holds while it is sent. */
interface Sending {
  readonly how: TryOptions;
  readonly reservation: Reservation;
  readonly span: RequestSpan | null;
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
