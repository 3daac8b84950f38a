import fs from 'node:fs';
import path from 'node:path';

/** Series of a stack in which faults were injected, one after the other. */
export interface Recording {
  /** The command that records it. */
  readonly command: string;
  /** Seconds of a rule's time for each second of the run. */
  readonly compression: number;
  /** What happened, in order; steps are seconds of the run. */
  readonly phases: readonly RecordedPhase[];
  /** Values in promtool's notation, by series. */
  readonly series: Readonly<Record<string, string>>;
}

/** A part of a run: from one step to the one before the next part. */
export interface RecordedPhase {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** The recordings, by name. */
export const RECORDINGS = ['away', 'frozen', 'lost', 'load', 'gateway'] as const;

/** Folder of the recordings. */
export const RECORDINGS_FOLDER = path.join(__dirname, 'recordings');

/** Reads a recording. */
export function readRecording(name: string): Recording {
  const file = path.join(RECORDINGS_FOLDER, `${name}.json`);
  return JSON.parse(fs.readFileSync(file, 'utf8')) as Recording;
}
