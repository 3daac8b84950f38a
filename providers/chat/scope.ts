/** A member of a request that cannot be translated. {@link translating} makes a value of it. */
class RefusedMember extends Error {
  readonly param: string;

  constructor(param: string, message: string) {
    super(message);
    this.param = param;
  }
}

/** Why a line is refused: as `EncodedLine` has it. */
export interface Refusal {
  readonly kind: 'refused';
  /** The path of the member, as OpenAI's `param`. */
  readonly param: string;
  readonly message: string;
}

/** How strict a translation is. */
export class TranslationScope {
  readonly #dropParams: boolean;

  /** @param dropParams drops or clamps what cannot be expressed, instead of refusing it */
  constructor(dropParams: boolean) {
    this.#dropParams = dropParams;
  }

  /** Refuses the line, however it is translated: without this member it would mean something else. */
  refuse(param: string, message: string): never {
    throw new RefusedMember(param, message);
  }

  /** Refuses the line, or lets the caller leave the member out. */
  drop(param: string, message: string): void {
    if (!this.#dropParams) this.refuse(param, message);
  }

  /** `value` within the bounds, which the line must respect unless it may be changed. */
  within(param: string, value: number, [least, most]: readonly [number, number]): number {
    const clamped = Math.min(Math.max(value, least), most);
    if (clamped !== value) this.drop(param, `the provider takes ${least} to ${most}`);
    return clamped;
  }
}

/** Runs a translation. A member that was refused is its result; any other error is a fault and goes on. */
export function translating<Value>(translate: () => Value): Value | Refusal {
  try {
    return translate();
  } catch (error) {
    if (!(error instanceof RefusedMember)) throw error;
    return { kind: 'refused', param: error.param, message: error.message };
  }
}
