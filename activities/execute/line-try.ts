import { Link } from '../../core/dispatch/queue/linked-list';
import { isNightshiftError } from '../../core/errors';
import { lineId } from '../../core/names/ids';
import { readLineFields } from '../../core/openai/member-ranges';
import type {
  BackendFailure,
  BackendOutcome,
  BackendRequest,
  SentRequest,
} from '../../inference/backend';
import type { Permit } from '../../inference/dispatcher';
import type { MemoryBudget, Reservation } from '../../inference/memory-budget';
import type { Route } from '../../inference/registry';
import type { RequestSpan, RequestSpans } from '../../platform/tracing/tracing';
import type { ObjectReader } from '../../storage/object-store';
import type { Chunk } from './chunk';
import type { ChunkLine } from './chunk-ledger';
import type { GatewayHeaders } from './gateway-headers';
import type { LineBodies, LineBody } from './line-body';
import { isPutBack, type LineResults } from './line-results';
import type { LoopSlices, SliceTask } from './loop-slices';
import type { ReadBlocks } from './read-blocks';
import type { TryHow, TryResult } from './try-result';

/** What all tries of a chunk share. */
export interface TryParts {
  readonly chunk: Chunk;
  readonly route: Route;
  readonly input: ObjectReader;
  readonly memory: MemoryBudget;
  readonly blocks: ReadBlocks;
  readonly bodies: LineBodies;
  readonly headers: GatewayHeaders;
  /** Shared by all chunks of this process. */
  readonly slices: LoopSlices;
  /** Null unless the batch is traced. */
  readonly spans: RequestSpans | null;
  readonly results: LineResults;
  /** Time limit of one request, ms. */
  readonly timeoutMs: number;
}

/** What a try needs of its run. */
export interface TryRun {
  /** Aborts when requests in flight must not be waited for any longer. */
  readonly abort: AbortSignal;
  /**
   * Asked when the line has been read, and again right before the first byte leaves. Both steps take
   * time, and the process may have been frozen meanwhile.
   */
  maySend(): boolean;
  /** Whether the chunk leaves and waits for no request that a gateway still holds. */
  isLeaving(): boolean;
  stopping(): boolean;
  openLines(): number;
  /** The try has ended. Called once, or {@link onTryFailed} is. Neither throws. */
  onTryEnded(ended: LineTry, result: TryResult): void;
  /** The line could not be read or sent; such a try does not count. */
  onTryFailed(failed: LineTry, error: unknown): void;
}

/** What one try is about. */
export interface TrySubject {
  readonly line: ChunkLine;
  /** The caller releases it when the try has ended. */
  readonly permit: Permit;
  /** The try is the breaker's probe. */
  readonly probe: boolean;
}

/**
 * One try of one line: reads its bytes, sends its `body`, and has its result made from the answer.
 *
 * States: reading → waiting for memory → sent → over. Usually the line and its memory are there at once, and the request
 * leaves before {@link start} returns. The object is the request too, so that a try costs no promise and no closure.
 */
export class LineTry extends Link<LineTry> implements BackendRequest, TryHow, SliceTask {
  readonly line: ChunkLine;
  readonly permit: Permit;
  readonly probe: boolean;
  /** When it began, on the monotonic clock, ms. */
  readonly startedMs = performance.now();
  readonly requestId: string;
  headers: BackendRequest['headers'] = {};
  readonly #parts: TryParts;
  readonly #run: TryRun;
  readonly #block: Buffer | undefined;
  #customId = '';
  #body: LineBody | null = null;
  #reservation: Reservation | null = null;
  #span: RequestSpan | null = null;
  #sent: SentRequest | null = null;
  /** Set at the end of the request. */
  #outcome: BackendOutcome | null = null;
  /** Unix ms. */
  #sentMs = 0;
  /** On the monotonic clock, ms. */
  #sendingMs = 0;
  #limit: number | null = null;
  #isOver = false;

  constructor(parts: TryParts, run: TryRun, { line, permit, probe }: TrySubject) {
    super();
    this.line = line;
    this.permit = permit;
    this.probe = probe;
    this.#parts = parts;
    this.#run = run;
    this.#block = parts.blocks.take(line.length);
    this.requestId = lineId(parts.chunk.batchId, line.offset);
  }

  get path(): string {
    return this.#parts.chunk.endpoint;
  }

  get deadlineMs(): number {
    return this.#parts.chunk.deadlineMs;
  }

  get timeoutMs(): number {
    return this.#parts.timeoutMs;
  }

  get accept(): string | undefined {
    return this.#body?.accept;
  }

  get body(): BackendRequest['body'] {
    return this.#body?.content ?? NOTHING;
  }

  get load(): Permit {
    return this.permit;
  }

  /** Begins. May end the try before it returns. */
  start(): void {
    const { offset, length } = this.line;
    const { input } = this.#parts;
    const block = this.#block;
    try {
      const bytes = input.readNow?.(offset, length, block) ?? null;
      if (bytes !== null) return this.#onRead(bytes);
      input.readLater(offset, length, block, (read, error) => this.#onReadLater(read, error));
    } catch (error) {
      this.fail(error);
    }
  }

  /** Ends the try as failed before it was sent. */
  fail(error: unknown): void {
    // The try shows nothing about the gateway, so the breaker may send another probe.
    if (this.probe) this.#parts.route.breaker.onProbeLost(Date.now());
    if (this.#leave()) this.#run.onTryFailed(this, error);
  }

  /** Ends the request as `aborted`, if it was sent. */
  abort(): void {
    this.#sent?.abort();
  }

  /** Ends the request as `held` if a gateway still holds it. */
  closeIfHeld(): void {
    this.#sent?.closeIfHeld();
  }

  maySend(): boolean {
    return this.#run.maySend();
  }

  isLeaving(): boolean {
    return this.#run.isLeaving();
  }

  stopping(): boolean {
    return this.#run.stopping();
  }

  openLines(): number {
    return this.#run.openLines();
  }

  onBytes(byteLength: number): Promise<void> | undefined {
    return this.#reservation?.grow(byteLength);
  }

  onSettled(outcome: BackendOutcome): void {
    this.#outcome = outcome;
    this.#parts.slices.do(this);
  }

  /** Handles the outcome. */
  onSlice(): void {
    const outcome = this.#outcome;
    if (outcome === null) return;
    try {
      this.#onOutcome(outcome);
    } catch (error) {
      this.fail(error);
    }
  }

  #onReadLater(bytes: Buffer | null, failure: unknown): void {
    if (bytes === null) return this.fail(failure);
    try {
      this.#onRead(bytes);
    } catch (error) {
      this.fail(error);
    }
  }

  #onRead(bytes: Buffer): void {
    const { bodies, memory } = this.#parts;
    const { bodyStart, bodyEnd, customId } = readLineFields(bytes);
    this.#customId = customId;
    const body = bodies.of(bytes.subarray(bodyStart, bodyEnd), this.requestId);
    this.#body = body;
    if (body === null) return this.#endWithoutFile();
    this.#reservation = memory.tryReserve(body.memoryBytes);
    if (this.#reservation === null) void this.#reserve(body.memoryBytes);
    else this.#send();
  }

  async #reserve(bytes: number): Promise<void> {
    try {
      this.#reservation = await this.#parts.memory.reserve(bytes, this.#run.abort);
      this.#send();
    } catch (error) {
      this.fail(error);
    }
  }

  #send(): void {
    const { route, results, headers, spans, blocks } = this.#parts;
    if (!this.maySend()) {
      blocks.giveBack(this.#block);
      return this.#putBack();
    }
    if (this.#run.abort.aborted) return this.#end({ kind: 'unanswered' });
    const { line, requestId } = this;
    const { offset, tries } = line;
    this.#sentMs = Date.now();
    this.#limit = this.permit.sent();
    if (spans !== null) this.#span = spans.begin({ id: requestId, offset, tries });
    const given = headers.of(line);
    this.headers = this.#span === null ? given : { ...given, ...this.#span.headers };
    this.#sendingMs = performance.now();
    results.onSending();
    this.#sent = route.backend.send(this);
  }

  #onOutcome(outcome: BackendOutcome): void {
    const { results, blocks } = this.#parts;
    results.onOutcome(outcome, performance.now() - this.#sendingMs);
    if (isPutBack(outcome)) return this.#onPutBack(outcome);
    // Only an answer proves that the connection no longer reads the body.
    if (outcome.kind === 'answer') blocks.giveBack(this.#block);
    this.#end(
      results.of({
        line: this.line,
        customId: this.#customId,
        outcome,
        how: this,
        sentMs: this.#sentMs,
        limit: this.#limit,
        span: this.#span,
        body: this.#body,
      }),
    );
  }

  #onPutBack({ reason }: BackendFailure): void {
    this.load.used(0);
    this.#span?.end({ status: null, failure: reason, outcome: 'retry', retryAtMs: null });
    const failure = this.#body?.failure ?? null;
    if (failure === null) this.#putBack();
    else if (isNightshiftError(failure, 'object_missing')) this.#endWithoutFile();
    else this.fail(failure);
  }

  /** Puts the line back at once. The run decides whether it may still be sent. */
  #putBack(): void {
    this.#endUnseen({ kind: 'retry', atMs: Date.now() });
  }

  /** Ends a line whose file is gone. */
  #endWithoutFile(): void {
    this.load.used(0);
    this.#endUnseen(this.#parts.results.withoutFile(this.line, this.#customId));
  }

  /** Ends a try that no model server has seen. */
  #endUnseen(result: TryResult): void {
    if (this.probe) this.#parts.route.breaker.onProbeLost(Date.now());
    this.#end(result);
  }

  #end(result: TryResult): void {
    if (this.#leave()) this.#run.onTryEnded(this, result);
  }

  /** Gives back what it holds; false if that is done already. */
  #leave(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#body?.close();
    this.#reservation?.release();
    return true;
  }
}

const NOTHING = Buffer.alloc(0);
