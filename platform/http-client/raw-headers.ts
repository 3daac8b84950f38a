/**
 * The value of one field of undici's raw header list (name, value, name, value, …), or null. `name` is
 * lower-case. Names are compared by length first, so that few of them are decoded.
 */
export function rawHeader(raw: readonly Buffer[], name: string): string | null {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const candidate = raw[i];
    if (candidate?.length !== name.length) continue;
    if (candidate.toString('latin1').toLowerCase() === name)
      return raw[i + 1]?.toString('latin1') ?? null;
  }
  return null;
}
