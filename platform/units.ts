/** Units of durations (`250ms`, `4s`, `5m`, `24h`, `30d`) and sizes (docs/design/configuration.md#units). */
const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const SIZE_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Milliseconds of a duration such as `5m`; null if invalid. A number without a unit must be 0. */
export function parseDurationMs(text: string | number): number | null {
  if (text === 0 || text === '0') return 0;
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(String(text));
  return match ? Math.round(Number(match[1]) * (DURATION_MS[match[2] ?? ''] ?? NaN)) : null;
}

/** Bytes of a size such as `200MiB` or `4096`; null if invalid. */
export function parseSizeBytes(text: string | number): number | null {
  const match = /^(\d+)(B|KiB|MiB|GiB)?$/.exec(String(text));
  return match ? Number(match[1]) * (SIZE_BYTES[match[2] ?? 'B'] ?? NaN) : null;
}

/** A duration for people, in the largest unit that needs at most one decimal: `1.5h`, `45s`, `250ms`. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const unitMs = DURATION_MS[unit] ?? 1;
    if (ms >= unitMs && (ms * 10) % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}
