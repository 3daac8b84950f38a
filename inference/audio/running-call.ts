import { status as CODE, type StatusObject } from '@grpc/grpc-js';
import type { CallEnd, CallFailure, RunningCall } from './audio-calls';
import { failureOf } from './failures';

/** An RPC that runs. */
interface Rpc {
  /** Settles with its status, when it has ended. */
  readonly status: Promise<StatusObject>;
  /** Ends it locally. */
  cancel(): void;
}

const NO_RESULT: CallFailure = {
  kind: 'failed',
  message: 'The audio worker ended the call without a result.',
};

/**
 * An RPC on its way to the end of a call. If the gateway itself ends the RPC, its first reason counts, and not the
 * status that this leads to.
 */
export class CallRun<T> implements RunningCall<T> {
  readonly ended: Promise<CallEnd<T>>;
  readonly #rpc: Rpc;
  #own: CallFailure | null = null;
  #isOver = false;

  /** @param result the result of an RPC that ended well; null if it lacks one */
  constructor(rpc: Rpc, result: () => T | null) {
    this.#rpc = rpc;
    this.ended = rpc.status.then((status) => this.#judge(status, result));
  }

  /** Whether the RPC has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  abort(): void {
    this.#stop({ kind: 'aborted', message: 'The call was cancelled.' });
  }

  /** Sends what the RPC needs. An error ends the call as `source`. */
  send(work: () => Promise<void>): void {
    work().catch((error: unknown) => this.#stop({ kind: 'source', message: textOf(error) }));
  }

  /** Calls the owner, unless the call was stopped. Its errors end the call instead of the process. */
  tell(work: () => void): void {
    if (this.#own !== null) return;
    try {
      work();
    } catch (error) {
      this.refuse(error);
    }
  }

  /** The owner cannot take what the worker sent. */
  refuse(error: unknown): void {
    this.#stop({ kind: 'failed', message: textOf(error) });
  }

  #stop(failure: CallFailure): void {
    this.#own ??= failure;
    this.#rpc.cancel();
  }

  #judge(status: StatusObject, result: () => T | null): CallEnd<T> {
    this.#isOver = true;
    if (this.#own !== null) return { ok: false, failure: this.#own };
    if (status.code !== CODE.OK) return { ok: false, failure: failureOf(status) };
    const found = result();
    return found === null ? { ok: false, failure: NO_RESULT } : { ok: true, result: found };
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
