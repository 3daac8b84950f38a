import { ApplicationFailure, Context } from '@temporalio/activity';
import type { ExecuteChunkInput, ExecuteChunkResult } from '../contract';
import { withHeartbeat } from '../runtime/with-heartbeat';
import { AdmissionQueue } from './admission-queue';
import { BatchFiles } from './batch-files';
import type { Chunk } from './chunk';
import { chunkOf } from './chunk';
import { checkAdmission } from './chunk-admission';
import { ChunkAttempt } from './chunk-attempt';
import type { ExecuteDeps } from './deps';
import type { EndedAttempt, ExecuteObserver } from './observer';
import { EmptyQueueLog } from './empty-queue-log';
import { ExclusiveGate } from './exclusive-gate';
import { LoopSlices } from './loop-slices';
import type { RunContext } from './open-run';
import { OpeningOrder } from './opening-order';
import { PlanRuns } from './plan-runs';
import type { SharedState } from './open-send-run';
import { openSendRun } from './open-send-run';
import { ReadBlocks } from './read-blocks';
import { deferredResult, waitAfter, waitReasonOf, withShortSlice } from './waiting-at-server';
import { crashesBefore } from './worker-crashes';

/**
 * The activity that answers plan entries `[from, to)` of one model. Each attempt takes these steps: check
 * that this process could send anything, take the chunk's row, read the journal, send what has no answer,
 * journal each answer, seal, release the row (docs/design/execution.md#chunks-and-time-slices).
 */
export function createExecuteChunk(
  deps: ExecuteDeps,
): (input: ExecuteChunkInput) => Promise<ExecuteChunkResult> {
  const shared: SharedState = {
    admissionQueue: new AdmissionQueue(),
    gate: new ExclusiveGate(),
    blocks: new ReadBlocks(),
    slices: new LoopSlices(deps.dispatcher),
    emptyQueues: new EmptyQueueLog(deps.dispatcher, deps.logger),
    batchFiles: new BatchFiles(deps.store),
  };
  const order = new OpeningOrder();
  const runs = new PlanRuns(deps.store);
  return async (input) => {
    const { info } = Context.current();
    const chunk = chunkOf(input);
    const crashes = crashesBefore(info.heartbeatDetails, info.attempt);
    if (crashes >= chunk.maxCrashes) throw tooManyCrashes(crashes);
    const admission = { ...deps, ...shared, taskQueue: info.taskQueue };
    const deferral = deps.drain.aborted ? null : checkAdmission(chunk, admission);
    if (deferral !== null) return deferredResult(chunk, deferral, deps.worker);
    const sized = info.attempt > 1 ? withShortSlice(chunk) : chunk;
    return observed(chunk, deps.observer, () =>
      runAttempt(sized, { deps, shared, order, runs, crashes }),
    );
  };
}

/** Reports how the attempt ended and how long it took. */
async function observed(
  { batchId }: Chunk,
  observer: ExecuteObserver,
  run: () => Promise<ExecuteChunkResult>,
): Promise<ExecuteChunkResult> {
  const startedMs = performance.now();
  let exit: EndedAttempt['exit'] = 'error';
  try {
    const result = await run();
    exit = result.left;
    return result;
  } catch (error) {
    exit = waitReasonOf(error) ?? 'error';
    throw error;
  } finally {
    observer.chunkEnded({ batchId, exit, tookMs: performance.now() - startedMs });
  }
}

interface AttemptParts {
  readonly deps: ExecuteDeps;
  readonly shared: SharedState;
  readonly order: OpeningOrder;
  readonly runs: PlanRuns;
  readonly crashes: number;
}

/** @throws a failure that lets the chunk wait at the server, if it may wait and nothing was sent */
async function runAttempt(
  chunk: Chunk,
  { deps, shared, order, runs, crashes }: AttemptParts,
): Promise<ExecuteChunkResult> {
  const openRun = (context: RunContext) => openSendRun(context, deps, shared);
  const readRuns = (of: Chunk) => runs.read(of);
  const attempt = new ChunkAttempt(chunk, { deps, crashes, order, readRuns, openRun });
  // The first heartbeat goes out before the attempt takes its row, or while it yields to a holder. If the attempt
  // comes too late, Temporal's answer cancels it (docs/design/execution.md#late-attempts).
  return withHeartbeat(
    async (heartbeat) => {
      const result = await attempt.run();
      const { answered, next, left: exitReason } = result;
      const route = deps.registry.route(chunk.model);
      if (!chunk.mayWait || answered > 0 || next > chunk.from || route === null) return result;
      const { nextDueMs } = attempt;
      const failure = waitAfter({ chunk, route, exitReason, nextDueMs }, shared.admissionQueue);
      if (failure === null) return result;
      attempt.endByItself();
      heartbeat.beat();
      throw failure;
    },
    { details: () => attempt.heartbeatDetails },
  );
}

function tooManyCrashes(crashes: number): ApplicationFailure {
  const message = `${crashes} workers died while they worked on this chunk`;
  return ApplicationFailure.create({ message, type: 'workers_died', nonRetryable: true });
}
