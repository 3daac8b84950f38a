import type { HeaderFields } from './header-fields';

/** Fields as undici gives them: name, value, name, value, …, as bytes. */
export class RawFields implements HeaderFields {
  readonly #raw: readonly Buffer[];

  constructor(raw: readonly Buffer[]) {
    this.#raw = raw;
  }

  /** Names are compared by length first, so that few of them are decoded. */
  first(name: string): string | null {
    const raw = this.#raw;
    for (let i = 0; i + 1 < raw.length; i += 2) {
      if (isName(raw[i], name)) return raw[i + 1]?.toString('latin1') ?? null;
    }
    return null;
  }

  joined(name: string): string | null {
    const raw = this.#raw;
    let joined: string | null = null;
    for (let i = 0; i + 1 < raw.length; i += 2) {
      if (!isName(raw[i], name)) continue;
      const value = raw[i + 1]?.toString('latin1') ?? '';
      joined = joined === null ? value : `${joined}, ${value}`;
    }
    return joined;
  }

  pairs(): string[] {
    return decodedPairs(this.#raw);
  }
}

/** The texts of a list like that of {@link RawFields}. Fields are bytes; latin1 maps each to one character and back. */
export function decodedPairs(raw: readonly Buffer[]): string[] {
  return raw.map((bytes) => bytes.toString('latin1'));
}

function isName(candidate: Buffer | undefined, name: string): boolean {
  if (candidate?.length !== name.length) return false;
  return candidate.toString('latin1').toLowerCase() === name;
}
