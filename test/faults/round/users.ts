import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { UserCall } from '../checker/evidence';
import { USER_ID, userBody } from './answers';

/** Users who stream answers from the gateway beside the batches. */
export interface Users {
  /** Ends the traffic; every call so far, when the last one has ended. */
  stop(): Promise<UserCall[]>;
}

/** A user begins a call so often. */
const EVERY_MS = 120;
/** No answer for so long is one that never comes. */
const PATIENCE_MS = 30_000;

let calls = 0;

/** Starts users of the gateway at this base URL; none without one. */
export function startUsers(gatewayUrl: string | null): Users {
  const begun: Promise<UserCall>[] = [];
  let isOver = gatewayUrl === null;
  const traffic = (async () => {
    while (!isOver) {
      begun.push(callOnce(gatewayUrl ?? '', calls++));
      await delay(EVERY_MS);
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await traffic;
      return Promise.all(begun);
    },
  };
}

function callOnce(gatewayUrl: string, index: number): Promise<UserCall> {
  const sentMs = Date.now();
  let [status, text]: [number | null, string] = [null, ''];
  return new Promise((resolve) => {
    const end = (how: UserCall['end']) =>
      resolve({ index, sentMs, endedMs: Date.now(), end: how, status, text });
    const call = request(`${gatewayUrl}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', 'x-request-id': `${USER_ID}${index}` },
    });
    const patience = setTimeout(() => {
      end('hangs');
      call.destroy();
    }, PATIENCE_MS);
    call.once('close', () => clearTimeout(patience));
    call.once('error', () => end('broken'));
    call.once('response', (response) => {
      status = response.statusCode ?? 0;
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.once('error', () => end('broken'));
      response.once('close', () => end(response.complete ? 'whole' : 'broken'));
    });
    call.end(userBody(index));
  });
}
