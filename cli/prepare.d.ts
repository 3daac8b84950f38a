/** Builds `dist/` unless it is up to date. */
export function ensureBuilt(): void;
