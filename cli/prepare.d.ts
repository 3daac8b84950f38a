/** Builds `dist/` unless it was built from the sources as they are. */
export function ensureBuilt(): void;
