/** The label that all values without a label of their own share. */
export const OTHER = 'other';

/**
 * Admits values that clients choose, such as model names, as labels of metrics. Each label value costs
 * memory here and in Prometheus for every series, so their number is bounded.
 */
export interface LabelValues {
  /** The label of a value; counts as a use and admits the value if possible. */
  of(value: string): string;
  /** The current label of a value, without counting as a use. */
  peek(value: string): string;
  /**
   * The same as {@link of}, and pins the label until {@link release}: a gauge must be decremented under
   * the label under which it was incremented.
   */
  hold(value: string): string;
  /** The counterpart of one {@link hold}; returns the same label. */
  release(value: string): string;
  /** Drops values that have not been used for a while; called when the metrics are read. */
  sweep(): void;
}

export interface LabelValuesOptions {
  /** Values that may have a label of their own at the same time. */
  readonly max: number;
  /** Values that get a label even beyond `max`: those that the configuration names. */
  readonly reserved?: readonly string[];
  /** A value that is neither held nor used for this long is dropped. */
  readonly idleMs: number;
  readonly nowMs: () => number;
  /** Removes the series of a value. */
  readonly onGone: (value: string) => void;
}

interface Admitted {
  held: number;
  usedAtMs: number;
}

/** An empty {@link LabelValues}. */
export function createLabelValues(options: LabelValuesOptions): LabelValues {
  const { max, idleMs, nowMs, onGone } = options;
  const reserved = new Set(options.reserved);
  const admitted = new Map<string, Admitted>();
  /** How often each value is held under {@link OTHER}, its label until it is released. */
  const sharing = new Map<string, number>();

  const sweep = (): void => {
    const goneBeforeMs = nowMs() - idleMs;
    for (const [value, { held, usedAtMs }] of admitted) {
      if (held > 0 || usedAtMs > goneBeforeMs) continue;
      admitted.delete(value);
      onGone(value);
    }
  };
  const mayEnter = (value: string): boolean => {
    if (value === OTHER || sharing.has(value)) return false;
    if (admitted.size >= max) sweep();
    return admitted.size < max || reserved.has(value);
  };
  const entryOf = (value: string): Admitted | null => {
    const known = admitted.get(value);
    if (known !== undefined) {
      known.usedAtMs = nowMs();
      return known;
    }
    if (!mayEnter(value)) return null;
    const entry = { held: 0, usedAtMs: nowMs() };
    admitted.set(value, entry);
    return entry;
  };
  return {
    sweep,
    peek: (value) => (admitted.has(value) ? value : OTHER),
    of: (value) => (entryOf(value) === null ? OTHER : value),
    hold: (value) => {
      const entry = entryOf(value);
      if (entry === null) sharing.set(value, (sharing.get(value) ?? 0) + 1);
      else entry.held++;
      return entry === null ? OTHER : value;
    },
    release: (value) => {
      const shared = sharing.get(value);
      if (shared === undefined) {
        const entry = entryOf(value);
        if (entry !== null) entry.held = Math.max(0, entry.held - 1);
        return entry === null ? OTHER : value;
      }
      if (shared === 1) sharing.delete(value);
      else sharing.set(value, shared - 1);
      return OTHER;
    },
  };
}
