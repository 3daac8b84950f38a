/** One sample; null if the scrape did not have the series. */
export type Sample = number | null;

/**
 * Samples in the notation of promtool's tests. Equal neighbours and steady steps are runs: `3x4` is five times 3,
 * `1+2x3` is 1 3 5 7. A series that disappears gets a stale marker, as Prometheus writes one.
 */
export function seriesValues(samples: readonly Sample[]): string {
  const words: string[] = [];
  for (let at = 0; at < samples.length;) {
    const { word, length } = runAt(samples, at);
    words.push(word);
    at += length;
  }
  return words.join(' ');
}

function runAt(samples: readonly Sample[], at: number): { word: string; length: number } {
  const first = samples[at] ?? null;
  if (first === null) return gapAt(samples, at);
  const step = stepAt(samples, at);
  let length = 1;
  while (samples[at + length] === first + step * length) length++;
  if (step === 0 || length > 3) return { word: runWord(first, step, length), length };
  return { word: String(first), length: 1 };
}

/** The step to the next sample; 0 if a run of equal samples begins here, or nothing follows. */
function stepAt(samples: readonly Sample[], at: number): number {
  const [first, next] = [samples[at] ?? null, samples[at + 1] ?? null];
  if (first === null || next === null) return 0;
  // Sums of fractions are not exact, so such a run would not give the samples back.
  return Number.isInteger(first) && Number.isInteger(next) ? next - first : 0;
}

function runWord(first: number, step: number, length: number): string {
  if (length === 1) return String(first);
  if (step === 0) return `${first}x${length - 1}`;
  return `${first}${step > 0 ? '+' : ''}${step}x${length - 1}`;
}

function gapAt(samples: readonly Sample[], at: number): { word: string; length: number } {
  const isEnd = at > 0 && (samples[at - 1] ?? null) !== null;
  if (isEnd) return { word: 'stale', length: 1 };
  let length = 1;
  while (at + length < samples.length && (samples[at + length] ?? null) === null) length++;
  return { word: `_x${length}`, length };
}
