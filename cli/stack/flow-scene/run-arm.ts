import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { arrivals, PERMITS, type Arm } from './scene-plan';
import { SceneClient } from './scene-client';
import type { SceneServers } from './scene-servers';

/** One answer of an arm; times in ms from its begin. */
export interface Answer {
  readonly isUser: boolean;
  readonly dueMs: number;
  /** Time to the first token. */
  readonly ttftMs: number;
  readonly endMs: number;
}

/** What happened in an arm. */
export interface ArmRecord {
  readonly answers: readonly Answer[];
  /** Users' requests without an answer. */
  readonly failed: number;
  readonly tookMs: number;
}

/** How an arm is run. */
export interface ArmRun {
  readonly arm: Arm;
  readonly servers: SceneServers;
  /** Answers per second of the engines at the knee. */
  readonly capacity: number;
  readonly durationMs: number;
  readonly signal: AbortSignal;
  onAnswer(answer: Answer): void;
}

const RESEND_MS = 250;
/** Users who came last still get their answers. */
const LAST_ANSWERS_MS = 10_000;

/** Runs users, and the batch if the arm has one. The batch is cut off at the end: it never ends by itself. */
export async function runArm(run: ArmRun): Promise<ArmRecord> {
  const { arm, capacity, durationMs, signal } = run;
  const client = new SceneClient();
  const over = new AbortController();
  const batchSignal = AbortSignal.any([signal, over.signal]);
  setMaxListeners(0, batchSignal);
  const answers: Answer[] = [];
  const startMs = performance.now();
  const send = async (place: Place, isUser: boolean, dueMs: number): Promise<boolean> => {
    const end = await client.send({
      ...{ url: place.url, name: place.name, isStream: isUser, dueMs: startMs + dueMs },
      token: isUser ? null : place.token,
      signal: isUser ? signal : batchSignal,
    });
    const endMs = performance.now() - startMs;
    if (end.isAnswered && end.firstMs !== null && endMs < durationMs + LAST_ANSWERS_MS) {
      const answer = { isUser, dueMs, ttftMs: end.firstMs, endMs };
      answers.push(answer);
      run.onAnswer(answer);
    }
    return end.isAnswered;
  };
  const lanes = arm.hasBatch ? PERMITS : 0;
  const batch = Array.from({ length: lanes }, (_, lane) =>
    runLane(run, { lane, send, signal: batchSignal, startMs }),
  );
  const users: Promise<boolean>[] = [];
  try {
    for (const [i, dueMs] of arrivals(capacity, durationMs).entries()) {
      const waitMs = startMs + dueMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal });
      users.push(send(placeOf(run, i, `user ${i}`), true, dueMs));
    }
    await sleep(Math.max(0, startMs + durationMs - performance.now()), undefined, { signal });
    over.abort();
    const failed = (await Promise.all(users)).filter((isAnswered) => !isAnswered).length;
    await Promise.all(batch);
    return { answers, failed, tookMs: durationMs };
  } finally {
    over.abort();
    client.close();
  }
}

interface Place {
  readonly url: string;
  readonly name: string;
  readonly token: string;
}

interface Lane {
  readonly lane: number;
  readonly signal: AbortSignal;
  readonly startMs: number;
  send(place: Place, isUser: boolean, dueMs: number): Promise<boolean>;
}

/** One permit of a worker: a line is open, held or in flight, until it is answered. */
async function runLane(run: ArmRun, { lane, send, signal, startMs }: Lane): Promise<void> {
  for (let i = 0; !signal.aborted; i++) {
    const place = placeOf(run, lane + i, `line ${lane} ${i}`);
    const isAnswered = await send(place, false, performance.now() - startMs);
    if (!isAnswered && !signal.aborted)
      await sleep(RESEND_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Without the gateway, the engines are used in turn. */
function placeOf({ arm, servers }: ArmRun, turn: number, name: string): Place {
  const { engines, gateway, workerToken: token } = servers;
  const url = arm.isControlled ? gateway : (engines[turn % engines.length] ?? '');
  return { url, name, token };
}
