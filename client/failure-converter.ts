import { DefaultFailureConverter } from '@temporalio/common';

/** Puts message and stack trace of a failure into a payload, which a codec can encrypt. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
