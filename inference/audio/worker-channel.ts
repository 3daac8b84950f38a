import type { ChannelOptions, StatusObject } from '@grpc/grpc-js';
import { status as CODE } from '@grpc/grpc-js';
import type { AudioClient } from './audio-client';
import { isPingRefusal } from './failures';

/** What a {@link WorkerChannel} is made of. */
export interface WorkerChannelParts {
  readonly keepalive: { readonly timeMs: number; readonly timeoutMs: number };
  readonly maxMessageBytes: number;
  open(options: ChannelOptions): AudioClient;
  /** The server does not bear the pings. Called once. */
  onPingRefused(): void;
}

/** The longest time that grpc-js takes for a timer: as good as no pings. */
const NEVER_MS = 2 ** 31 - 1;
/** So many UNAVAILABLE in a row replace a channel. */
const UNAVAILABLE_IN_ROW = 3;

/** A client, and the calls that use it. */
interface Generation {
  readonly client: AudioClient;
  calls: number;
  isReplaced: boolean;
}

/**
 * One channel to a worker, and its successors. A failed call never closes it, because other calls use it. It is replaced
 * after three UNAVAILABLE in a row, and by one without pings if the server refuses them: calls that run end on the old
 * one, which is closed after the last of them (docs/design/audio-calls.md#channels).
 */
export class WorkerChannel {
  readonly #parts: WorkerChannelParts;
  #current: Generation | null = null;
  #unavailable = 0;
  #pings = true;
  #isClosed = false;

  constructor(parts: WorkerChannelParts) {
    this.#parts = parts;
  }

  /** Begins a call. `end` must be called once with its status. @throws Error if the channel is closed */
  begin(): {
    readonly client: AudioClient;
    end(status: Pick<StatusObject, 'code' | 'details'>): void;
  } {
    if (this.#isClosed) throw new Error('the audio worker is closed');
    const generation = (this.#current ??= this.#open());
    generation.calls++;
    return { client: generation.client, end: (status) => this.#end(generation, status) };
  }

  /** Ends all calls. */
  close(): void {
    this.#isClosed = true;
    this.#current?.client.close();
  }

  #open(): Generation {
    const { keepalive, maxMessageBytes, open } = this.#parts;
    const client = open({
      'grpc.keepalive_time_ms': this.#pings ? keepalive.timeMs : NEVER_MS,
      'grpc.keepalive_timeout_ms': keepalive.timeoutMs,
      'grpc.max_receive_message_length': maxMessageBytes,
      'grpc.max_send_message_length': -1,
    });
    return { client, calls: 0, isReplaced: false };
  }

  #end(generation: Generation, end: Pick<StatusObject, 'code' | 'details'>): void {
    generation.calls--;
    if (!generation.isReplaced) this.#judge(generation, end);
    if (generation.isReplaced && generation.calls === 0) generation.client.close();
  }

  #judge(generation: Generation, end: Pick<StatusObject, 'code' | 'details'>): void {
    this.#unavailable = end.code === CODE.UNAVAILABLE ? this.#unavailable + 1 : 0;
    if (isPingRefusal(end) && this.#pings) {
      this.#pings = false;
      this.#parts.onPingRefused();
    } else if (this.#unavailable < UNAVAILABLE_IN_ROW) return;
    this.#unavailable = 0;
    generation.isReplaced = true;
    this.#current = null;
  }
}
