/**
 * Objects and arrays within each other that a request may have. Files have a limit of their own, which is higher than
 * what `JSON.stringify` can write: it uses the stack. No file limits what is JSON in a text, such as arguments of calls.
 */
const MAX_LEVELS = 500;
/** Why such a value is refused. */
export const TOO_DEEP = `nested deeper than ${MAX_LEVELS} levels`;

/** Whether a JSON value is nested too deeply to be written again. It uses no stack, however deep the value is. */
export function isTooDeep(value: unknown): boolean {
  let level = [value].filter(isNested);
  for (let levels = 0; level.length > 0; levels++) {
    if (levels === MAX_LEVELS) return true;
    level = level.flatMap((one) => Object.values(one).filter(isNested));
  }
  return false;
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
