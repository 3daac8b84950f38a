import type { LineErrorCode } from '../../core/openai/result-line';
import type { ExecuteChunkInput, ExecuteChunkResult } from '../contract';
import { withHeartbeat } from '../runtime/with-heartbeat';
import { chunkOf } from './chunk';
import { ChunkAttempt } from './chunk-attempt';
import type { ExecuteDeps } from './deps';
import { EndLinesRun } from './end-lines-run';
import { KeptAnswers } from './kept-answers';
import type { OpenRun, RunContext } from './open-run';
import { openInput } from './open-run';

/**
 * Ends plan entries `[from, to)` without sending them: each with the answer that is kept for it, because that tells
 * more, or with a code. Answers in the journal stay as they are. It runs in an activity.
 */
export function endLines(
  input: ExecuteChunkInput,
  deps: ExecuteDeps,
  codeOf: (position: number) => LineErrorCode,
): Promise<ExecuteChunkResult> {
  const openRun = async (context: RunContext): Promise<OpenRun> => {
    const reader = await openInput(context);
    const kept = new KeptAnswers(deps.store);
    const run = new EndLinesRun({ ...context, input: reader, kept, codeOf });
    return { run, close: () => kept.close().finally(() => reader.close()) };
  };
  // Nothing is sent, so its order does not matter.
  const readRuns = () => Promise.resolve(null);
  const attempt = new ChunkAttempt(chunkOf(input), { deps, crashes: 0, readRuns, openRun });
  return withHeartbeat(() => attempt.run(), { details: () => attempt.heartbeatDetails });
}
