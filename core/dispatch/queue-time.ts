/** A longer header is not read: no gateway needs that much, and clients wait for the answer. */
const MAX_LENGTH = 2_048;

const QUOTED = /"((?:[^"\\]|\\.)*)"/g;

/**
 * The time that a request waited in its gateway's queue, ms: `dur` of the metric `queue` of `Server-Timing`
 * (https://www.w3.org/TR/server-timing/). Null if the answer does not say it, or not in a valid way.
 *
 * @param value all values of the header, joined by commas; null for none
 */
export function queueTimeMs(value: string | null): number | null {
  if (value === null || value.length > MAX_LENGTH) return null;
  // Without separators inside quotes, commas and semicolons divide metrics and parameters.
  const plain = value.replace(QUOTED, (_, text: string) => text.replace(/[,;=]/g, ' '));
  for (const metric of plain.split(',')) {
    const [name = '', ...parameters] = metric.split(';');
    if (name.trim().toLowerCase() === 'queue') return durationMs(parameters);
  }
  return null;
}

function durationMs(parameters: readonly string[]): number | null {
  for (const parameter of parameters) {
    const [name = '', text = ''] = parameter.split('=');
    if (name.trim().toLowerCase() !== 'dur') continue;
    return /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null;
  }
  return null;
}
