import { status as CODE, type StatusObject } from '@grpc/grpc-js';
import type { CallFailure } from './audio-calls';

/** Clients read it, and logs have it. */
const MAX_MESSAGE_CHARS = 500;

/** What a Python server with default settings says when it ends a connection because of its pings. */
const PINGS = /bandwidth exhausted|too_many_pings|too many pings/i;

const KINDS: Readonly<Partial<Record<CODE, CallFailure['kind']>>> = {
  [CODE.UNAVAILABLE]: 'lost',
  [CODE.FAILED_PRECONDITION]: 'lost',
  [CODE.CANCELLED]: 'lost',
  [CODE.DEADLINE_EXCEEDED]: 'timeout',
  [CODE.RESOURCE_EXHAUSTED]: 'exhausted',
  [CODE.INVALID_ARGUMENT]: 'invalid',
  [CODE.NOT_FOUND]: 'not_found',
};

/** The failure that a status says (docs/design/audio-calls.md#failed-calls). */
export function failureOf(end: Pick<StatusObject, 'code' | 'details'>): CallFailure {
  const { code, details } = end;
  const kind = isPingRefusal(end) ? 'lost' : (KINDS[code] ?? 'failed');
  const words = details === '' ? 'no reason given' : details;
  const isForClients = kind === 'invalid' || kind === 'not_found';
  const message = isForClients ? words : `${CODE[code] ?? code}: ${words}`;
  return { kind, message: message.slice(0, MAX_MESSAGE_CHARS) };
}

/** Whether the server ended the connection because it bears fewer pings (docs/design/audio-calls.md#keepalive). */
export function isPingRefusal({ code, details }: Pick<StatusObject, 'code' | 'details'>): boolean {
  return (
    (code === CODE.RESOURCE_EXHAUSTED || code === CODE.UNAVAILABLE) && PINGS.test(details ?? '')
  );
}
