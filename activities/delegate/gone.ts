/** How long a provider may not know a job, or its results, before they count as gone, ms. */
export const GONE_MS = 900_000;

/** Time until the next question about a job that the provider does not know, ms. */
export const GONE_POLL_MS = 30_000;
