import type { TranslationScope } from './scope';

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** Reads values of a request by their paths. A value of another type refuses the line. */
export class Values {
  readonly #scope: TranslationScope;

  constructor(scope: TranslationScope) {
    this.#scope = scope;
  }

  object(value: unknown, path: string): Json {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
    return this.#scope.refuse(path, 'expected an object');
  }

  array(value: unknown, path: string): readonly unknown[] {
    return Array.isArray(value) ? value : this.#scope.refuse(path, 'expected an array');
  }

  text(value: unknown, path: string): string {
    return typeof value === 'string' ? value : this.#scope.refuse(path, 'expected a string');
  }

  textOrNull(value: unknown, path: string): string | null {
    return isAbsent(value) ? null : this.text(value, path);
  }

  numberOrNull(value: unknown, path: string): number | null {
    if (isAbsent(value)) return null;
    return typeof value === 'number' ? value : this.#scope.refuse(path, 'expected a number');
  }

  booleanOrNull(value: unknown, path: string): boolean | null {
    if (isAbsent(value)) return null;
    return typeof value === 'boolean' ? value : this.#scope.refuse(path, 'expected true or false');
  }

  /** Refuses or drops the members of `object` that are not in `known`. */
  only(object: Json, known: readonly string[], path: string): void {
    for (const [name, value] of Object.entries(object)) {
      if (known.includes(name) || isAbsent(value)) continue;
      this.#scope.drop(path === '' ? name : `${path}.${name}`, 'the provider has no such member');
    }
  }
}

/** OpenAI treats null like a missing member. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}
