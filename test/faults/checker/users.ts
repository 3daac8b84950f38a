import { DROP_CODES } from '../../../core/dispatch/drop-codes';
import { userAnswer } from '../round/answers';
import type { Disturbance, RoundEvidence, UserCall, Violation } from './evidence';

/** Faults that may cost a user an answer. All others must not be felt. */
const FELT = ['gateway', 'model-server'];
/** From the return of a part until users feel nothing more: a start, a probe, and requests that waited. */
const AFTER_EFFECT_MS = 8_000;
const CODES: readonly unknown[] = [
  ...Object.keys(DROP_CODES),
  ...['backend_unreachable', 'backend_lost', 'backend_timeout'],
];

/**
 * Checks what users got: the exact bytes of the answer, or a clear error. An answer that was cut must not look
 * whole, and only faults of the gateway and its model server excuse an error.
 */
export function checkUsers({ users, disturbances }: RoundEvidence): Violation[] {
  return users.flatMap((call) => {
    const fault = faultOf(call) ?? reasonless(call, disturbances);
    return fault === null ? [] : [{ rule: 'user', batch: '', detail: `${fault}: ${words(call)}` }];
  });
}

function faultOf({ end, status, text, index }: UserCall): string | null {
  if (end === 'hangs') return 'no answer';
  if (status === 200 && end === 'whole') return text === userAnswer(index) ? null : 'other bytes';
  if (status === 200) return userAnswer(index).startsWith(text) ? null : 'other bytes, then broken';
  if (end === 'whole' && !CODES.includes(codeOf(text))) return 'an unclear error';
  return null;
}

function reasonless(call: UserCall, disturbances: readonly Disturbance[]): string | null {
  if (call.status === 200 && call.end === 'whole') return null;
  const isFelt = disturbances.some(
    ({ part, fromMs, toMs }) =>
      FELT.includes(part) && fromMs <= call.endedMs && toMs + AFTER_EFFECT_MS >= call.sentMs,
  );
  return isFelt ? null : 'an error without a reason';
}

function codeOf(text: string): unknown {
  try {
    return (JSON.parse(text) as { error?: { code?: unknown } }).error?.code;
  } catch {
    return null;
  }
}

function words({ index, sentMs, endedMs, end, status, text }: UserCall): string {
  return `user-${index} from ${sentMs} to ${endedMs} ${end} ${String(status)} ${text.slice(0, 200)}`;
}
