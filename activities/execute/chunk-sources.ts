import { endpointRule } from '../../core/openai/endpoints';
import type { ObjectReader } from '../../storage/object-store';
import { RecordingCosts, SPEECH_COSTS } from './audio-costs';
import type { BatchFiles, OpenBatchFiles } from './batch-files';
import { ChunkCosts, type LineCosts } from './chunk-costs';
import type { ExecuteDeps } from './deps';
import { JSON_BODIES, recordingBodies, speechBodies, type LineBodies } from './line-body';
import { openInput, type RunContext } from './open-run';

/** What the requests of a chunk are made from. */
export interface ChunkSources {
  readonly input: ObjectReader;
  readonly bodies: LineBodies;
  readonly costs: LineCosts;
  close(): Promise<void>;
}

/** Opens the input, and the files of requests with recordings. @throws input_missing, plan_unreadable if one is gone */
export async function openSources(
  context: RunContext,
  deps: ExecuteDeps,
  batchFiles: BatchFiles,
): Promise<ChunkSources> {
  const { chunk, retry } = context;
  const { namesAudio } = endpointRule(chunk.endpoint);
  const open = () => batchFiles.open(chunk);
  const named = namesAudio ? await retry('reading the list of files', open) : null;
  try {
    const input = await openInput(context);
    const close = async (): Promise<void> => {
      named?.close();
      await input.close();
    };
    return { input, close, ...contentOf(input, named, { chunk, deps }) };
  } catch (error) {
    named?.close();
    throw error;
  }
}

/** Bodies and costs of the endpoint. */
function contentOf(
  input: ObjectReader,
  named: OpenBatchFiles | null,
  { chunk, deps }: { readonly chunk: RunContext['chunk']; readonly deps: ExecuteDeps },
): Pick<ChunkSources, 'bodies' | 'costs'> {
  const { store, config } = deps;
  if (named !== null) {
    const { files } = named;
    return { bodies: recordingBodies(store, files), costs: new RecordingCosts({ input, files }) };
  }
  if (!endpointRule(chunk.endpoint).answersAudio) {
    return { bodies: JSON_BODIES, costs: new ChunkCosts() };
  }
  const bodies = speechBodies(chunk.model, config.limits.max_answer_bytes);
  return { bodies, costs: SPEECH_COSTS };
}
