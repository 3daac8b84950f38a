import type { ExecuteChunkInput, ExecuteChunkResult } from '../contract';
import { asFailure } from '../runtime/failure';
import { withHeartbeat } from '../runtime/with-heartbeat';
import { chunkOf } from './chunk';
import { ChunkAttempt } from './chunk-attempt';
import type { ExecuteDeps } from './deps';
import type { OpenRun, RunContext } from './open-run';
import { openInput } from './open-run';
import { EndLinesRun } from './end-lines-run';
import { KeptAnswers } from './kept-answers';

/** What {@link createEndUnrouted} needs. */
export interface EndUnroutedDeps extends ExecuteDeps {
  /** Whether a recent worker could send the model, checked in PostgreSQL. @throws postgres_unavailable */
  isKnownNow(model: string): Promise<boolean>;
}

/**
 * The activity that ends plan entries `[from, to)` of a model that no worker can send. If a worker can
 * send it after all, it changes nothing and returns null. Answers in the journal stay as they are
 * (docs/design/batch-path.md#unknown-models).
 */
export function createEndUnrouted(
  deps: EndUnroutedDeps,
): (input: ExecuteChunkInput) => Promise<ExecuteChunkResult | null> {
  const openRun = async (context: RunContext): Promise<OpenRun> => {
    const input = await openInput(deps.store, context);
    const codeOf = () => 'model_not_found' as const;
    // What a provider has said about the line tells more than that its gateway is gone.
    const kept = new KeptAnswers(deps.store);
    const run = new EndLinesRun({ ...context, input, kept, codeOf });
    return { run, close: () => kept.close().finally(() => input.close()) };
  };
  return async (input) => {
    const isKnown = await deps.isKnownNow(input.model).catch((error: unknown) => {
      throw asFailure(error);
    });
    if (isKnown) return null;
    const attempt = new ChunkAttempt(chunkOf(input), { deps, crashes: 0, openRun });
    return withHeartbeat(() => attempt.run(), { details: () => attempt.heartbeatDetails });
  };
}
