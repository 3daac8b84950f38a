const MAX_DEATHS = 5;
const DEATHS_WITHIN_MS = 30_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** What to do about a component that died: start it again after a pause, or give it up. */
export type RestartDecision =
  | { readonly kind: 'restart'; readonly inMs: number }
  | { readonly kind: 'give up'; readonly deaths: number; readonly withinMs: number };

/** Decides after each death of one component. `nowMs` is monotonic. */
export type RestartPolicy = (wasReady: boolean, nowMs: number) => RestartDecision;

/**
 * Only deaths before the component was ready count. Five of them within 30 s mean that it cannot start,
 * and another attempt will not help. A component that dies after it was ready was killed, or crashed on
 * some piece of work. Giving up would stop all other work, so such a component is always restarted
 * (docs/design/embedded-stack.md#supervision).
 */
export function createRestartPolicy(): RestartPolicy {
  let unreadyAtMs: number[] = [];
  return (wasReady, nowMs) => {
    if (!wasReady) unreadyAtMs.push(nowMs);
    unreadyAtMs = unreadyAtMs.filter((atMs) => nowMs - atMs < DEATHS_WITHIN_MS);
    const deaths = unreadyAtMs.length;
    if (deaths >= MAX_DEATHS) return { kind: 'give up', deaths, withinMs: DEATHS_WITHIN_MS };
    const doublings = Math.max(0, deaths - 1);
    return { kind: 'restart', inMs: Math.min(FIRST_PAUSE_MS * 2 ** doublings, LONGEST_PAUSE_MS) };
  };
}
