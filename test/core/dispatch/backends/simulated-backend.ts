import {
  LearntLimit,
  type LearntLimitOptions,
  type SentMark,
} from '../../../../core/dispatch/backends/learnt-limit';

/** A model server and its clients, in virtual time. */
export interface Scene extends Partial<LearntLimitOptions> {
  /** With more requests in flight, each one takes longer in proportion: throughput does not grow. */
  readonly knee: number;
  /** Requests beyond this number are refused with 429. */
  readonly places?: number;
  /** Clients that send their next request as soon as they may. */
  readonly clients: number;
  readonly isSheddable: boolean;
  readonly seed: number;
  readonly untilMs: number;
}

/** What the scene showed. */
export interface SceneResult {
  /** The limit at each change. */
  readonly limits: readonly { readonly atMs: number; readonly limit: number }[];
  limitAt(atMs: number): number;
  /** Mean share of the places in use. */
  readonly busy: number;
  /** Share of refused requests. */
  readonly refused: number;
}

const MEAN_TOKENS = 200;
/** For each token below the knee. */
const TOKEN_MS = 10;

/** Runs clients against a backend whose limit is learnt. */
export function closedLoop(scene: Scene): SceneResult {
  const { knee, places = Infinity, clients, isSheddable, untilMs, seed, ...bounds } = scene;
  const limit = new LearntLimit(bounds);
  const random = generator(seed);
  const open: { left: number; tokens: number; sent: SentMark }[] = [];
  const limits = [{ atMs: 0, limit: limit.limit }];
  let [nowMs, sent, refused, busyMs] = [0, 0, 0, 0];
  const note = (): void => {
    if (limits.at(-1)?.limit !== limit.limit) limits.push({ atMs: nowMs, limit: limit.limit });
  };
  while (nowMs < untilMs) {
    while (open.length < clients && limit.hasRoom({ isSheddable, nowMs })) {
      const mark = limit.send(nowMs, { isSheddable });
      sent++;
      if (open.length >= places) {
        refused++;
        limit.end({ signal: 'overload', sent: mark, work: 0, pauseMs: 0, nowMs });
        // The client comes back after the next answer.
        if (open.length > 0) break;
        continue;
      }
      const tokens = Math.ceil(
        MEAN_TOKENS * Math.exp(0.7 * (random() + random() + random() - 1.5)),
      );
      open.push({ left: tokens * TOKEN_MS, tokens, sent: mark });
    }
    note();
    // Processor sharing beyond the knee: all advance at the same rate until the first one ends.
    const slowdown = Math.max(1, open.length / knee);
    const first = open.reduce((a, b) => (b.left < a.left ? b : a));
    const tookMs = first.left * slowdown;
    const done = first.left;
    nowMs += tookMs;
    busyMs += tookMs * Math.min(1, open.length / Math.min(places, knee));
    for (const exchange of open) exchange.left -= done;
    open.splice(open.indexOf(first), 1);
    const { sent: mark, tokens } = first;
    limit.end({ signal: 'success', sent: mark, work: tokens, pauseMs: 0, nowMs });
    note();
  }
  return {
    limits,
    limitAt: (atMs) => limits.filter((change) => change.atMs <= atMs).at(-1)?.limit ?? 0,
    busy: busyMs / nowMs,
    refused: refused / sent,
  };
}

/** Lehmer's generator: uniform in [0, 1). */
export function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
