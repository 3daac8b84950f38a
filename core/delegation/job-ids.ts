const JOB_ID = /^job_([0-9a-f]{32})$/;
const WIRE_ID = /^n([0-9a-f]{12})([0-9a-z]{6})$/;
const POSITION_DIGITS = 6;
/** 36^6: more positions than any plan has. */
const MAX_POSITIONS = 36 ** POSITION_DIGITS;

/** What tells a job apart from every other job of the installation. */
export interface JobIdentity {
  readonly batchId: string;
  readonly safeModel: string;
  /** First plan position of the part. */
  readonly from: number;
  /** The round of jobs, from 0. The next round covers only lines without an answer. */
  readonly generation: number;
  /** The number of the job within its part and generation, from 0. */
  readonly ordinal: number;
}

/**
 * Id of a job: `job_` and the first 32 hex digits of a SHA-256 over its identity, so that all attempts,
 * reset workflows and restored databases come to the same id (docs/design/provider-jobs.md#ids).
 *
 * @param sha256Hex the SHA-256 of a text's UTF-8 bytes as 64 hex digits; core has no hash of its own
 */
export function jobId(identity: JobIdentity, sha256Hex: (text: string) => string): string {
  const { batchId, safeModel, from, generation, ordinal } = identity;
  // No field contains a slash, so no two identities have the same text.
  const text = [batchId, safeModel, from, generation, ordinal].join('/');
  return `job_${sha256Hex(text).slice(0, 32)}`;
}

/**
 * Id of a line at its provider: `n`, 12 hex digits of the job id, and the plan position as 6 digits in
 * base 36. 19 characters of `[a-z0-9]` fit the `custom_id`, label or file name of every provider.
 */
export function wireId(job: string, position: number): string {
  const prefix = wirePrefix(job);
  if (!Number.isInteger(position) || position < 0 || position >= MAX_POSITIONS)
    throw new RangeError(`position ${position} does not fit a wire id`);
  return prefix + position.toString(36).padStart(POSITION_DIGITS, '0');
}

/** The plan position in a {@link wireId} of this job; null for any other text. */
export function positionOfWireId(job: string, text: string): number | null {
  const match = WIRE_ID.exec(text);
  if (match === null || `n${match[1]}` !== wirePrefix(job)) return null;
  return parseInt(match[2] ?? '', 36);
}

function wirePrefix(job: string): string {
  const digits = JOB_ID.exec(job)?.[1];
  if (digits === undefined) throw new RangeError(`${job} is no job id`);
  return `n${digits.slice(0, 12)}`;
}
