/** The label that values share which have none of their own. */
export const OTHER = 'other';

/**
 * Admits values that clients choose, such as names of models, as labels of metrics. Each costs memory
 * here and in Prometheus for every series, so only some have a label of their own.
 */
export interface LabelValues {
  /** The label of a value now. */
  of(value: string): string;
  /** The label that a value has already; does not count as a use. */
  peek(value: string): string;
  /** The same as {@link of}, and keeps it until {@link release}: what goes up under a label must go down under it. */
  hold(value: string): string;
  release(value: string): string;
  /** Lets values go that nobody has used for a while; called when somebody asks for the metrics. */
  sweep(): void;
}

/** What {@link createLabelValues} takes. */
export interface LabelValuesOptions {
  /** Values with a label of their own at one time. */
  readonly max: number;
  /** Values that always have one, whatever `max` says: an operator has named them. */
  readonly reserved?: readonly string[];
  /** A value that nobody holds or uses for so long is gone. */
  readonly idleMs: number;
  readonly nowMs: () => number;
  /** Removes the series of a value. */
  readonly onGone: (value: string) => void;
}

interface Admitted {
  held: number;
  usedAtMs: number;
}

/** {@link LabelValues} of which none is in use yet. */
export function createLabelValues(options: LabelValuesOptions): LabelValues {
  const { max, idleMs, nowMs, onGone } = options;
  const reserved = new Set(options.reserved);
  const admitted = new Map<string, Admitted>();
  /** How often each value is held that shares a label: it keeps sharing until it is released. */
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
