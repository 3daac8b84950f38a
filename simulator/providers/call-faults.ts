import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiFault, ProviderAnswer } from './answer';
import type { CallFault, ProviderCallName } from './settings';

/** What {@link serveWithFault} serves. */
export interface ServedCall {
  effect(): ProviderAnswer;
  errorOf(error: ApiFault): ProviderAnswer;
}

/** Time between the pieces of a slow body, ms. */
const PIECE_MS = 20;

/** The faults that are left of the settings. */
export class CallFaults {
  #faults: { readonly fault: CallFault; left: number }[] = [];

  configure(faults: readonly CallFault[]): void {
    this.#faults = faults.map((fault) => ({ fault, left: fault.times ?? Infinity }));
  }

  /** The fault of the next call: the first that is for this kind of call, and not used up. */
  take(call: ProviderCallName): CallFault | null {
    const entry = this.#faults.find(({ fault, left }) => fault.call === call && left > 0);
    if (entry === undefined) return null;
    entry.left--;
    return entry.fault;
  }
}

/**
 * Serves one call with its fault (docs/design/simulator.md#faults-of-calls).
 * @param served `effect` does what the call asks for; it is not called if the fault refuses the call. `errorOf`
 *   writes an error in the provider's format.
 */
export async function serveWithFault(
  response: ServerResponse,
  fault: CallFault | null,
  { effect, errorOf }: ServedCall,
): Promise<void> {
  if (fault === null) return sendAnswer(response, effect());
  const { drop, status, accepts, delay_ms: delayMs } = fault;
  if (drop) response.socket?.resetAndDestroy();
  // The client may go away meanwhile. The call takes effect nevertheless, as a late packet does.
  if (delayMs > 0) await delay(delayMs, undefined, { ref: false });
  const isRefused = drop || status !== null;
  const answer = accepts || !isRefused ? effect() : null;
  if (drop) return;
  if (status !== null || answer === null) {
    return sendAnswer(response, refusal(fault, errorOf));
  }
  const sent = fault.cut ? Math.floor(answer.bytes.length / 2) : answer.bytes.length;
  if (fault.cut || fault.bytes_per_sec !== null) {
    const bytesPerSec = fault.bytes_per_sec ?? Number.MAX_SAFE_INTEGER;
    await sendPaced(response, answer, { bytes: sent, bytesPerSec });
  } else sendAnswer(response, answer);
}

/** Sends an answer at once. */
export function sendAnswer(response: ServerResponse, answer: ProviderAnswer): void {
  writeHead(response, answer);
  response.end(answer.bytes);
}

function refusal(
  { status, code, retry_after_sec: retryAfterSec }: CallFault,
  errorOf: ServedCall['errorOf'],
): ProviderAnswer {
  const httpStatus = status ?? 500;
  const apiCode = code ?? (httpStatus === 401 ? 'invalid_api_key' : null);
  const message = `the settings ask for status ${httpStatus}`;
  const answer = errorOf({ httpStatus, message, param: null, apiCode });
  return { ...answer, retryAfterSec };
}

function writeHead(response: ServerResponse, answer: ProviderAnswer): void {
  const { status, contentType, bytes, retryAfterSec = null, headers } = answer;
  if (retryAfterSec !== null) response.setHeader('retry-after', String(retryAfterSec));
  const length = { 'content-type': contentType, 'content-length': bytes.length };
  response.writeHead(status, { ...length, ...headers });
}

/** Sends the first bytes of an answer at a rate, and closes the connection if that was not all. */
async function sendPaced(
  response: ServerResponse,
  answer: ProviderAnswer,
  { bytes, bytesPerSec }: { readonly bytes: number; readonly bytesPerSec: number },
): Promise<void> {
  writeHead(response, answer);
  const step = Math.max(1, Math.ceil((bytesPerSec * PIECE_MS) / 1_000));
  for (let at = 0; at < bytes && !response.destroyed; at += step) {
    response.write(answer.bytes.subarray(at, Math.min(at + step, bytes)));
    if (at + step < bytes) await delay(PIECE_MS, undefined, { ref: false });
  }
  if (bytes === answer.bytes.length) response.end();
  else response.socket?.destroySoon();
}
