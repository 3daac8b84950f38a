import { NightshiftError, isNightshiftError } from '../../core/errors';

/**
 * Turns `object_missing` into the code that ends the batch: without this object the batch cannot go on
 * (docs/design/ends.md#system-failure).
 */
export function missingAs(code: 'plan_unreadable' | 'input_missing', message: string) {
  return (cause: unknown): never => {
    throw isNightshiftError(cause, 'object_missing')
      ? new NightshiftError(code, message, { cause })
      : cause;
  };
}
