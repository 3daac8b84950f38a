import { crc32 } from 'node:zlib';
import { lineId } from '../../core/names/ids';
import { gatewayHealth, loadSignal } from '../../core/dispatch/outcome';
import type { BackoffInput } from '../../core/dispatch/retry';
import { backoffMs, costOf, isRetryable, nextTry } from '../../core/dispatch/retry';
import { retryAfterMs } from '../../core/dispatch/retry-after';
import { encodeFrame, FRAME_KIND } from '../../core/journal/frame';
import { embedAnswer } from '../../core/openai/answer';
import { modelTag } from '../../core/openai/answer-model';
import { lineParts } from '../../core/openai/member-ranges';
import type { LineErrorCode } from '../../core/openai/result-line';
import { answerLine } from '../../core/openai/result-line';
import { toHeaderText } from '../../core/openai/tenant-name';
import type { BackendAnswer, BackendFailure, BackendOutcome } from '../../inference/backend';
import type { LoadReport } from '../../inference/dispatcher';
import type { MemoryBudget, Reservation } from '../../inference/memory-budget';
import type { Route } from '../../inference/registry';
import type { ObjectReader } from '../../storage/object-store';
import type { ExecuteChunkInput } from '../contract';
import type { ChunkLine } from './chunk-ledger';
import type { EncodedFrame } from './error-frame';
import { errorFrame } from './error-frame';
import type { ExecuteObserver } from './observer';
import type { ReadBlocks } from './read-blocks';

/** With fewer lines open than this, an absent gateway is no dearer than a tail that it never bears. */
const WORTH_WAITING_LINES = 20;
/** Longest pause of a line that could not be sent at all. */
const UNCONNECTED_PAUSE_MS = 5_000;

/** How one try of one line ended. */
export type TryResult =
  | { readonly kind: 'answered'; readonly frame: EncodedFrame }
  | { readonly kind: 'retry'; readonly atMs: number }
  /** Aborted, or not to be tried again because of a stop: the end of the batch names it. */
  | { readonly kind: 'unanswered' };

export interface TryOptions {
  readonly signal: AbortSignal;
  /** This try is the breaker's probe: it is not counted when the gateway is still away. */
  readonly probe: boolean;
  /** Told when the request leaves and how its server bore it. */
  readonly load: LoadReport;
  stopping(): boolean;
  /**
   * Asked when all is read, and again when there is a connection, right before the first byte: both
   * take time, and the process may have stood still.
   */
  maySend(): boolean;
  /** Lines of the model that may still be without an answer. */
  openLines(): number;
}

/** One try that was sent, and how it ended. */
interface SentTry {
  readonly outcome: BackendOutcome;
  readonly how: TryOptions;
  readonly sentMs: number;
  /** Limit of the model when it was sent; null if it is fixed. */
  readonly limit: number | null;
}

interface Judged extends Pick<SentTry, 'outcome' | 'how'> {
  /** The outcome speaks against the gateway, not against the line. */
  readonly away: boolean;
  /** The outcome may use up a try of the line. */
  readonly counted: boolean;
}

export interface LineSenderOptions {
  readonly chunk: ExecuteChunkInput;
  readonly route: Route;
  readonly input: ObjectReader;
  readonly memory: MemoryBudget;
  readonly observer: ExecuteObserver;
  readonly blocks: ReadBlocks;
  /** Of the create call, lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * One try of one line: reads its bytes, sends exactly those of `body`, and makes the result line of
 * the answer. Decides nothing about permits, boxes or ends.
 */
export class LineSender {
  readonly #options: LineSenderOptions;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(options: LineSenderOptions) {
    this.#options = options;
    const { route, chunk, headers } = options;
    this.#headers = route.gateway.send_fairness_header
      ? { ...headers, 'x-gateway-inference-fairness-id': toHeaderText(chunk.tenant) }
      : headers;
  }

  /** @param how.stopping asked when the answer is there: during a stop nothing is retried. */
  async try(line: ChunkLine, how: TryOptions): Promise<TryResult> {
    const { input, memory, blocks, route } = this.#options;
    const block = blocks.take(line.length);
    let hold: Reservation | null = null;
    try {
      const { offset, length } = line;
      const bytes =
        input.readNow?.(offset, length, block) ?? (await input.read(offset, length, block));
      const { bodyStart, bodyEnd, customId } = lineParts(bytes);
      const body = bytes.subarray(bodyStart, bodyEnd);
      hold = memory.tryReserve(body.length) ?? (await memory.reserve(body.length, how.signal));
      if (!how.maySend()) {
        blocks.giveBack(block);
        return this.#unsent(how);
      }
      const sentMs = Date.now();
      const limit = how.load.sent();
      const outcome = await this.#send(line, body, { how, hold });
      if (outcome.kind === 'failure' && outcome.reason === 'unsent') return this.#unsent(how);
      // After anything but an answer the connection may still hold on to the body.
      if (outcome.kind === 'answer') blocks.giveBack(block);
      return this.#settle(line, customId, { outcome, how, sentMs, limit });
    } catch (error) {
      // Nothing was learned of the gateway: the breaker may send its probe again.
      if (how.probe) route.breaker.onProbeLost(Date.now());
      throw error;
    } finally {
      hold?.release();
    }
  }

  /** Back into the queue, which decides whether there is another time for the line. */
  #unsent({ probe }: TryOptions): TryResult {
    const nowMs = Date.now();
    if (probe) this.#options.route.breaker.onProbeLost(nowMs);
    return { kind: 'retry', atMs: nowMs };
  }

  #settle(line: ChunkLine, customId: string, sent: SentTry): TryResult {
    const { outcome, how, sentMs } = sent;
    const nowMs = Date.now();
    const pauseMs = outcome.kind === 'answer' ? retryAfterMs(outcome.retryAfter, nowMs) : null;
    how.load.replied(loadSignal(outcome), pauseMs ?? 0);
    const away = this.#reportHealth(line, outcome, { probe: how.probe, sentMs });
    const counted = this.#count(line, { ...sent, away });
    if (away && line.failingSinceMs === 0) line.failingSinceMs = nowMs;
    const result = this.#judge(line, customId, { outcome, away, how, counted });
    if (result.kind === 'retry') this.#options.observer.requestRetried(this.#options.chunk.model);
    return result;
  }

  /** Counts the try, or why it is none; true if it is one. */
  #count(line: ChunkLine, { outcome, how, limit, away }: SentTry & { away: boolean }): boolean {
    line.unconnected = isUnconnected(outcome) ? line.unconnected + 1 : 0;
    const cost = costOf({ outcome, limit, refusals: line.refusals });
    if (cost === 'refusal') line.refusals++;
    // What never reached the gateway is no try, and neither is a probe that found it away.
    const isTry = cost === 'try' && line.unconnected === 0 && !(away && how.probe);
    if (isTry) line.tries++;
    return cost === 'try';
  }

  /** The answer of a line that is not sent any more, because it kills its workers. */
  async poison(line: ChunkLine): Promise<EncodedFrame> {
    const bytes = await this.#options.input.read(line.offset, line.length);
    return this.#errorFrame(line, lineParts(bytes).customId, 'internal_error');
  }

  async #send(
    line: ChunkLine,
    body: Buffer,
    { how, hold }: { how: TryOptions; hold: Reservation },
  ): Promise<BackendOutcome> {
    const { chunk, route, observer } = this.#options;
    const startedMs = performance.now();
    observer.requestStarted(chunk.model);
    const outcome = await route.backend.send(
      {
        path: chunk.endpoint,
        body,
        requestId: lineId(chunk.batchId, line.offset),
        deadlineMs: chunk.deadlineMs,
        headers: this.#headers,
        onBytes: (byteLength) => hold.grow(byteLength),
        maySend: how.maySend,
      },
      how.signal,
    );
    observer.requestEnded(chunk.model, performance.now() - startedMs, isSuccess(outcome));
    return outcome;
  }

  /** Tells the breaker; true where the outcome speaks against the gateway, not against the line. */
  #reportHealth(
    line: ChunkLine,
    outcome: BackendOutcome,
    { probe, sentMs }: { probe: boolean; sentMs: number },
  ): boolean {
    const { breaker } = this.#options.route;
    const health = gatewayHealth(outcome);
    const nowMs = Date.now();
    if (health === 'alive') breaker.onSuccess(sentMs);
    else if (health !== 'unknown') {
      const id = lineId(this.#options.chunk.batchId, line.offset);
      breaker.onFailure({ lineId: id, kind: health, nowMs, probe });
      return true;
    } else if (probe) breaker.onProbeLost(nowMs);
    return false;
  }

  #judge(line: ChunkLine, customId: string, { outcome, away, how, counted }: Judged): TryResult {
    if (outcome.kind === 'failure' && outcome.reason === 'aborted') return { kind: 'unanswered' };
    // In a grace period an outcome that would be retried is dropped: the end names the line.
    if (how.stopping() && isRetryable(outcome)) return { kind: 'unanswered' };
    const { chunk, route } = this.#options;
    const clock = { nowMs: Date.now(), random: Math.random(), gateway: route.gateway };
    if (line.unconnected > 0) return this.#untilConnected(line, clock);
    const next = nextTry({
      outcome,
      attempt: Math.max(counted ? 1 : 0, line.tries),
      refusals: line.refusals,
      counted,
      deadlineMs: chunk.deadlineMs,
      ...clock,
    });
    // Kept until the end of the batch names it; sent again it would be beyond its tries.
    if (next.kind === 'expired') return { kind: 'retry', atMs: chunk.deadlineMs };
    if (next.kind === 'retry') return { kind: 'retry', atMs: next.atMs };
    if (away && this.#seemsAway(line, how)) {
      // The last try must not burn the line before the breaker has opened, nor as its probe.
      line.tries = Math.max(0, line.tries - 1);
      const attempt = Math.max(1, line.tries + line.refusals);
      const retryAfter = outcome.kind === 'answer' ? outcome.retryAfter : null;
      return { kind: 'retry', atMs: clock.nowMs + backoffMs({ attempt, retryAfter, ...clock }) };
    }
    if (outcome.kind === 'answer') {
      return { kind: 'answered', frame: this.#answerFrame(line, customId, outcome) };
    }
    return { kind: 'answered', frame: this.#errorFrame(line, customId, codeOf(outcome.reason)) };
  }

  /** However often: until the gateway can be reached, or the batch ends. */
  #untilConnected(line: ChunkLine, clock: Omit<BackoffInput, 'attempt' | 'retryAfter'>): TryResult {
    const { initial_backoff, max_backoff } = clock.gateway;
    // Many lines that wait are no burden on a gateway that is away: soon its breaker lets one ask for
    // all. The one that finds it back must not be the last to hear of it.
    const gateway = { initial_backoff, max_backoff: Math.min(max_backoff, UNCONNECTED_PAUSE_MS) };
    const pauseMs = backoffMs({ ...clock, gateway, attempt: line.unconnected, retryAfter: null });
    return { kind: 'retry', atMs: Math.min(clock.nowMs + pauseMs, this.#options.chunk.deadlineMs) };
  }

  /**
   * Whether a failure speaks of a gateway that is away rather than of this line: a probe; or many
   * failures in a row, none of others' successes since this line began to fail, and so much left to lose
   * that waiting is worth it. A few last requests that a gateway never bears look just like a gateway
   * that is away: they end by their tries.
   */
  #seemsAway(line: ChunkLine, how: TryOptions): boolean {
    if (how.probe) return true;
    const { breaker } = this.#options.route;
    if (!breaker.suspect || how.openLines() < WORTH_WAITING_LINES) return false;
    return (breaker.lastSuccessSentMs ?? 0) <= line.failingSinceMs;
  }

  #answerFrame(line: ChunkLine, customId: string, answer: BackendAnswer): EncodedFrame {
    const embedded = embedAnswer(answer.status, answer.body);
    const payload = answerLine({
      lineId: lineId(this.#options.chunk.batchId, line.offset),
      customId,
      status: answer.status,
      requestId: answer.requestId,
      embedded,
    });
    const header = {
      offset: line.offset,
      kind: embedded.ok ? FRAME_KIND.output : FRAME_KIND.error,
      status: answer.status,
      tries: line.tries,
      usage: embedded.usage,
      payloadLength: payload.length,
    };
    if (embedded.ok) this.#options.observer.tokens(this.#options.chunk.model, embedded.usage);
    const tagged = { ...header, modelTag: modelTag(embedded.model) };
    return { header, bytes: encodeFrame(tagged, payload, crc32) };
  }

  #errorFrame(line: ChunkLine, customId: string, code: LineErrorCode): EncodedFrame {
    return errorFrame(line, { batchId: this.#options.chunk.batchId, customId, code });
  }
}

/** No connection could be made: nothing of the request has left. */
function isUnconnected(outcome: BackendOutcome): boolean {
  return outcome.kind === 'failure' && outcome.reason === 'connect';
}

function isSuccess(outcome: BackendOutcome): boolean {
  return outcome.kind === 'answer' && outcome.status >= 200 && outcome.status < 300;
}

function codeOf(reason: BackendFailure['reason']): LineErrorCode {
  switch (reason) {
    case 'timeout':
      return 'request_timeout';
    case 'too_large':
      return 'response_too_large';
    case 'connect':
    case 'connection':
    case 'aborted':
    case 'unsent':
      return 'connection_error';
  }
}
