import { unansweredCode, type StopCause } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { Manifest } from '../../core/journal/manifest';
import { parseSealKey } from '../../core/names/object-names';
import { openParts } from './close-manifest';
import { InputLines } from './input-lines';
import { plannedOffsets, wholePlan, type PlanPlace } from './plan-offsets';
import { OpenLines, UnroutedLines, type LineSource } from './unanswered';

/** What is known of the lines that may lack an answer. */
export interface LineSourcesInput {
  readonly place: PlanPlace;
  readonly manifest: Manifest;
  /** The cause that the workflow came with. */
  readonly cause: StopCause | null;
  /** Null where the row names no input any more. */
  readonly inputKey: string | null;
}

/** Lines that may have to be written without an answer; to be closed. */
export interface LineSources {
  /** Planned lines that the manifest's seals leave open. */
  readonly open: LineSource;
  /** Lines of models that no backend serves. */
  readonly unrouted: LineSource;
  /** Unrouted lines that are left out, because the input is gone. */
  readonly unnamedLines: number;
  close(): Promise<void>;
}

const NONE: LineSource = {
  offset: Number.POSITIVE_INFINITY,
  isReady: true,
  load: () => Promise.resolve(),
  take: () => null,
  skip: () => undefined,
};

/**
 * The lines of a batch that its seals may not answer. The input is read for their names; where it is
 * gone and the batch was given up, they are left out. @throws input_missing where it is gone and the
 * batch was not given up, plan_unreadable, object_store_failed
 */
export async function openLineSources(input: LineSourcesInput): Promise<LineSources> {
  const { place, manifest } = input;
  const unroutedLines = Object.values(place.map.unrouted).reduce((sum, lines) => sum + lines, 0);
  if (manifest.cause === null && unroutedLines === 0) {
    return { open: NONE, unrouted: NONE, unnamedLines: 0, close: () => Promise.resolve() };
  }
  const lines = await openInput(input);
  const unrouted = lines && unroutedLines > 0 ? await openUnrouted(input) : null;
  return {
    open: manifest.cause === null ? NONE : await openLines(input, manifest.cause, lines),
    unrouted: unrouted ?? NONE,
    unnamedLines: lines === null ? unroutedLines : 0,
    close: async () => {
      await unrouted?.close();
      await lines?.close();
    },
  };
}

async function openLines(
  { place, manifest }: LineSourcesInput,
  cause: StopCause,
  input: InputLines | null,
): Promise<LineSource> {
  const settled = manifest.seals
    .map(({ key }) => parseSealKey(key))
    .filter((name) => name !== null);
  const offsets = await plannedOffsets(place, openParts(place.map.entries, settled));
  return new OpenLines(offsets, { code: unansweredCode(cause), input });
}

async function openUnrouted({ place, inputKey }: LineSourcesInput): Promise<UnroutedLines | null> {
  if (inputKey === null) return null;
  const planned = await plannedOffsets(place, wholePlan(place.map));
  return UnroutedLines.open({ store: place.store, key: inputKey }, planned);
}

async function openInput(input: LineSourcesInput): Promise<InputLines | null> {
  const { place, manifest, inputKey } = input;
  try {
    if (inputKey !== null) return new InputLines(await place.store.open(inputKey));
  } catch (error) {
    if (!isNightshiftError(error, 'object_missing')) throw error;
  }
  if (manifest.cause !== null || input.cause !== null) return null;
  throw new NightshiftError('input_missing', 'the input file is gone; lines cannot be named');
}
