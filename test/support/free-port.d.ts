/** A loopback port that nothing listens on right now. In JavaScript: plain scripts want it, too. */
export function freePort(): Promise<number>;
