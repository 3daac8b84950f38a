/** After the grace, chunks and finalization have this time before a batch counts as overdue. */
const AFTER_GRACE_MS = 5_000;

/** How long after its deadline a batch may take to end before it is overdue, s. Graces in ms. */
export function overdueAfterSec(grace: {
  readonly cancel_grace: number;
  readonly expiry_grace: number;
}): number {
  return Math.ceil((Math.max(grace.cancel_grace, grace.expiry_grace) + AFTER_GRACE_MS) / 1000);
}
