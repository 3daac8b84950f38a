import fs from 'node:fs';
import path from 'node:path';
import { alertRules } from '../alert-rules';
import { selectorsOf } from '../promql-names';
import { RECORDINGS_FOLDER, type Recording } from '../recording';
import type { ScrapedRun } from './scrapes';
import { seriesValues } from './series-values';

/** One second of a run is a minute for the rules. */
const COMPRESSION = 60;

/** Whether the rules select a series of this name. */
export function isSelected(): (name: string) => boolean {
  const names = new Set(
    alertRules().flatMap(({ expr }) => selectorsOf(expr).map(({ name }) => name)),
  );
  return (name) => names.has(name);
}

/** Replaces a recording. */
export function writeRecording(name: string, run: ScrapedRun): void {
  const series = [...run.series].map(([key, samples]) => [key, seriesValues(samples)] as const);
  const recording: Recording = {
    command: `node test/deploy/record/run.js ${name}`,
    compression: COMPRESSION,
    phases: run.phases,
    series: Object.fromEntries(series.sort(([a], [b]) => (a < b ? -1 : 1))),
  };
  fs.mkdirSync(RECORDINGS_FOLDER, { recursive: true });
  const file = path.join(RECORDINGS_FOLDER, `${name}.json`);
  fs.writeFileSync(file, `${JSON.stringify(recording, null, 2)}\n`);
}
