import { unansweredCode, type StopCause } from '../../core/batch/status';
import { NightshiftError, nullIfMissing } from '../../core/errors';
import type { Manifest } from '../../core/journal/manifest';
import { inputFilesKey, parseSealKey } from '../../core/names/object-names';
import { parseInputFiles } from '../../core/plan/input-files';
import { InputLines } from './input-lines';
import { type BatchPlan, plannedOffsets, wholePlan } from './plan-offsets';
import { type LineSource, UncoveredLines } from './unanswered-lines';
import { uncoveredRanges } from './unanswered-ranges';
import { UnroutedLines } from './unrouted-lines';

/** What decides which lines may lack an answer. */
export interface LineSourcesInput {
  readonly plan: BatchPlan;
  readonly manifest: Manifest;
  /** The cause that the workflow passed; the manifest may be older and have none. */
  readonly cause: StopCause | null;
  /** Null if the row names no input any more. */
  readonly inputKey: string | null;
}

/** Lines that may have to be written without an answer. The caller closes them. */
export interface LineSources {
  /** Planned lines that no seal of the manifest covers. */
  readonly uncovered: LineSource;
  /** Lines of models that no gateway serves. */
  readonly unrouted: LineSource;
  /** Unrouted lines that are counted but not written, because the input is gone. */
  readonly unnamedLines: number;
  close(): Promise<void>;
}

/** A source without lines. */
export const NO_LINES: LineSource = {
  offset: Number.POSITIVE_INFINITY,
  isReady: true,
  load: () => Promise.resolve(),
  take: () => null,
  skip: () => undefined,
};

/**
 * Opens the lines of a batch that its seals may not answer. Their `custom_id`s are read from the input. If
 * the input is gone and there is a cause, these lines are not written. @throws input_missing if the input
 * is gone and there is no cause; plan_unreadable; object_store_failed
 */
export async function openLineSources(input: LineSourcesInput): Promise<LineSources> {
  const { plan, manifest } = input;
  const unroutedLines = Object.values(plan.map.unrouted).reduce((sum, lines) => sum + lines, 0);
  if (manifest.cause === null && unroutedLines === 0) {
    return {
      uncovered: NO_LINES,
      unrouted: NO_LINES,
      unnamedLines: 0,
      close: () => Promise.resolve(),
    };
  }
  const lines = await openInput(input);
  const unrouted = lines && unroutedLines > 0 ? await openUnrouted(input) : null;
  return {
    uncovered:
      manifest.cause === null ? NO_LINES : await openUncovered(input, manifest.cause, lines),
    unrouted: unrouted ?? NO_LINES,
    unnamedLines: lines === null ? unroutedLines : 0,
    close: async () => {
      await unrouted?.close();
      await lines?.close();
    },
  };
}

async function openUncovered(
  { plan, manifest }: LineSourcesInput,
  cause: StopCause,
  input: InputLines | null,
): Promise<LineSource> {
  const settled = manifest.seals
    .map(({ key }) => parseSealKey(key))
    .filter((name) => name !== null);
  const offsets = await plannedOffsets(plan, uncoveredRanges(plan.map.entries, settled));
  return new UncoveredLines(offsets, { code: unansweredCode(cause), input });
}

async function openUnrouted({ plan, inputKey }: LineSourcesInput): Promise<UnroutedLines | null> {
  if (inputKey === null) return null;
  const planned = await plannedOffsets(plan, wholePlan(plan.map));
  const { store, batchId, map } = plan;
  const bytes = await nullIfMissing(store.read(inputFilesKey(batchId, map.nonce)));
  const files = bytes === null ? null : parseInputFiles(bytes);
  return UnroutedLines.open({ store, key: inputKey, files }, planned);
}

async function openInput(input: LineSourcesInput): Promise<InputLines | null> {
  const { plan, manifest, inputKey } = input;
  const reader = inputKey === null ? null : await nullIfMissing(plan.store.open(inputKey));
  if (reader !== null) return new InputLines(reader);
  if (manifest.cause !== null || input.cause !== null) return null;
  throw new NightshiftError('input_missing', 'the input file is gone; lines cannot be named');
}
