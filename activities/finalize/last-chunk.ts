import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { Logger } from '../../platform/logger';
import type {
  BatchActivities,
  ExecuteChunkInput,
  ExecuteChunkResult,
  FinalizeResult,
} from '../contract';
import { endEarly } from './end-early';
import type { ResultDrafts } from './result-drafts';

/** What the activity needs. */
export interface LastChunkDeps {
  readonly steps: Pick<BatchActivities, 'executeChunk' | 'finalize'>;
  readonly logger: Pick<Logger, 'warn'>;
  /** Begins result files while the last chunk is at work. */
  readonly drafts: Pick<ResultDrafts, 'advance' | 'drop'>;
  /** Aborts when the process shuts down. */
  readonly drain: AbortSignal;
}

/** How long a chunk may make result files. Its attempt has a minute for what comes after its requests. */
const MAX_END_MS = 20_000;

/** The chunks of one batch that are at work in this process. */
interface AtWork {
  chunks: number;
  /** Whether nothing is left to hand out: one was marked, and all that have returned since then were done. */
  isAllHandedOut: boolean;
}

/**
 * Chunks of which the last one of its batch also makes the result files and writes the end: the workflow and the server
 * would need two more turns for it (docs/design/batch-path.md#the-last-chunk). Whether other processes are done as well
 * is for finalization to find out: it needs a seal for every line. If there is none, or anything else goes wrong, the
 * result says nothing of an end, and the workflow schedules finalization as ever.
 */
export function createLastChunk(deps: LastChunkDeps): BatchActivities['executeChunk'] {
  const batches = new Map<string, AtWork>();
  return async (input) => {
    const atWork = begin(batches, input);
    let result: ExecuteChunkResult | null = null;
    try {
      result = await deps.steps.executeChunk(input);
    } finally {
      leave(batches, input, atWork, result);
      prepareEnd(deps, input, atWork);
    }
    const isLast = atWork.chunks === 0 && atWork.isAllHandedOut;
    const ended = isLast && !deps.drain.aborted ? await endAfter(deps, input) : null;
    return ended === null ? result : { ...result, ended };
  };
}

/** Writes the result files as far as possible while the last chunks are at work; gives them up after a stop. */
function prepareEnd(
  { drafts, drain }: LastChunkDeps,
  { batchId, tenant, inputKey }: ExecuteChunkInput,
  { chunks, isAllHandedOut }: AtWork,
): void {
  if (!isAllHandedOut || drain.aborted) drafts.drop(batchId);
  else if (chunks > 0) drafts.advance({ batchId, tenant, inputKey });
}

async function endAfter(
  deps: LastChunkDeps,
  { batchId, planNonce, deadlineMs }: ExecuteChunkInput,
): Promise<FinalizeResult | null> {
  const limits = { windowMs: MAX_END_MS, isBounded: true };
  try {
    return await endEarly(deps, deadlineMs, {
      input: { batchId, nonce: planNonce, cause: null, ...limits },
      failure: 'the last chunk leaves the end of its batch to the workflow',
    });
  } finally {
    deps.drafts.drop(batchId);
  }
}

function begin(batches: Map<string, AtWork>, { batchId, isLast }: ExecuteChunkInput): AtWork {
  const atWork = batches.get(batchId) ?? { chunks: 0, isAllHandedOut: false };
  batches.set(batchId, atWork);
  atWork.chunks++;
  if (isLast === true) atWork.isAllHandedOut = true;
  return atWork;
}

function leave(
  batches: Map<string, AtWork>,
  { batchId, to }: ExecuteChunkInput,
  atWork: AtWork,
  result: ExecuteChunkResult | null,
): void {
  const isDone = result?.left === EXIT_REASON.done && result.next === to;
  if (!isDone || result.stopCause !== null) atWork.isAllHandedOut = false;
  if (--atWork.chunks === 0) batches.delete(batchId);
}
