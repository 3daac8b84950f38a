import type { StartWait } from '../../platform/start-wait';

/** The start of a process whose dependencies answer: reaches each of them once. */
export const NO_WAIT: Pick<StartWait, 'until'> = { until: ({ reach }) => reach() };
