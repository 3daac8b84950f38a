import type { ServerResponse } from 'node:http';
import type { RawHeaders } from './forwarded-headers';
import type { ProxiedBackend, ProxiedRequest } from './proxied-backend';

/** One request, the backend that gets it, and the response that gets the answer. */
export interface PassThroughOptions extends ProxiedRequest {
  readonly backend: ProxiedBackend;
  /** The answer to the client; nothing has been written to it. */
  readonly response: ServerResponse;
  /** Time limit from the start to the last byte of the answer, ms. */
  readonly requestTimeoutMs: number;
  /** Time limit without progress, ms: from the head on, the next byte must come, or the client read. */
  readonly stallTimeoutMs: number;
  /**
   * Called once with the final status and the fields for the client. Returns the fields to send, or null to
   * decline the answer: it is read and dropped, and the response stays unwritten, so that another backend can be
   * tried.
   */
  readonly onHead?: (status: number, headers: string[]) => RawHeaders | null;
  /** Called once with the time from the start to the first byte of the body, ms. */
  readonly onFirstByte?: (ttfbMs: number) => void;
  /** Ends the exchange as `aborted`. */
  readonly signal?: AbortSignal | null;
}
