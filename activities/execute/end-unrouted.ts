import type { ExecuteChunkInput, ExecuteChunkResult } from '../contract';
import { asFailure } from '../runtime/failure';
import type { ExecuteDeps } from './deps';
import { endLines } from './end-lines';

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
  return async (input) => {
    const isKnown = await deps.isKnownNow(input.model).catch((error: unknown) => {
      throw asFailure(error);
    });
    if (isKnown) return null;
    return endLines(input, deps, () => 'model_not_found');
  };
}
