import { DefaultFailureConverter } from '@temporalio/common';

/** Moves message and stack trace of a failure into a payload, so that a codec can encrypt them. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
