import { nextNumber } from '../words';
import type { ProviderSettings } from './settings';

/** Applies the faults of results to the lines of an output file, and joins them. */
export function outputFile(
  lines: readonly string[],
  faults: ProviderSettings['results'],
  foreignLine: string,
): Buffer {
  let shown = [...lines];
  if (faults.includes('missing')) shown = shown.slice(1);
  if (faults.includes('doubled')) shown.push(...shown.slice(-1));
  if (faults.includes('foreign')) shown.unshift(foreignLine);
  if (faults.includes('shuffled')) shown = shuffled(shown);
  const last = shown.at(-1) ?? '';
  if (!faults.includes('cut_off')) return resultFile(shown);
  return Buffer.concat([
    resultFile(shown.slice(0, -1)),
    Buffer.from(last.slice(0, last.length / 2)),
  ]);
}

/** A file with these lines. */
export function resultFile(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => `${line}\n`).join(''));
}

/** The entries in another order, which is always the same, so that a failed test can be repeated. */
export function shuffled<Entry>(entries: readonly Entry[]): Entry[] {
  let state = 1;
  const keyed = entries.map((entry) => {
    state = nextNumber(state);
    return { entry, key: state };
  });
  return keyed.sort((a, b) => a.key - b.key).map(({ entry }) => entry);
}
