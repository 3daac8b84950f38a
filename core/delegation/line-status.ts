/**
 * Whether a line that its provider answered with this HTTP status may be answered at another time or place. It stays
 * open then, for the next generation or the gateway (docs/design/delegation.md#answers-that-are-kept).
 */
export function mayAnswerLater(status: number): boolean {
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500;
}
