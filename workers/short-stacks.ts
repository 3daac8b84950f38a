/**
 * How many frames V8 keeps of a stack trace in the workflow sandbox. Of a promise, two are the SDK's own, and the next two
 * say where it was made.
 */
const FRAMES = 4;

/**
 * Lets the workflows of this bundle take short stack traces (docs/design/temporal.md#call-stack). Only code that runs before
 * the bundle can, because `Error` is frozen afterwards. It shares the first line with the bundle, so that the lines of the
 * source map hold.
 */
export function withShortStacks(bundle: string): string {
  return `Error.stackTraceLimit = ${FRAMES}; ${bundle}`;
}
