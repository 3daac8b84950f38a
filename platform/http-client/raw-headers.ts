/**
 * All values of a field that is a list, joined by commas in their order; null if there is none. `name` is
 * lower-case.
 */
export function joinedRawHeader(raw: readonly Buffer[], name: string): string | null {
  let joined: string | null = null;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (!isName(raw[i], name)) continue;
    const value = raw[i + 1]?.toString('latin1') ?? '';
    joined = joined === null ? value : `${joined}, ${value}`;
  }
  return joined;
}

/**
 * The value of one field of undici's raw header list (name, value, name, value, …), or null. `name` is
 * lower-case. Names are compared by length first, so that few of them are decoded.
 */
export function rawHeader(raw: readonly Buffer[], name: string): string | null {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (isName(raw[i], name)) return raw[i + 1]?.toString('latin1') ?? null;
  }
  return null;
}

function isName(candidate: Buffer | undefined, name: string): boolean {
  if (candidate?.length !== name.length) return false;
  return candidate.toString('latin1').toLowerCase() === name;
}
