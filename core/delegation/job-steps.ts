/**
 * The steps of a job at a provider, and the transitions between them
 * (docs/design/provider-jobs.md#steps-of-a-job).
 *
 * | from      | to                                               |
 * |-----------|--------------------------------------------------|
 * | staging   | staged, submitted, refused, abandoned            |
 * | staged    | uploaded, creating, submitted, refused, abandoned |
 * | uploaded  | creating, submitted, refused, abandoned          |
 * | creating  | submitted, refused, abandoned                    |
 * | submitted | ended, refused, abandoned                        |
 * | ended     | collected, abandoned                             |
 * | collected | released                                         |
 * | refused   | released                                         |
 * | abandoned | released                                         |
 *
 * `staged → creating` is for providers that take the lines in the body of the create call. Steps before
 * `creating` become `submitted` if PostgreSQL was restored and an attempt from before reports its job. A
 * job that is given up before its first create call is `abandoned` too: the janitor removes what was
 * uploaded for it.
 */
export const JOB_STEPS = [
  'staging',
  'staged',
  'uploaded',
  'creating',
  'submitted',
  'ended',
  'collected',
  'refused',
  'abandoned',
  'released',
] as const;

/** How far a job has come. */
export type JobStep = (typeof JOB_STEPS)[number];

const NEXT: Readonly<Record<JobStep, readonly JobStep[]>> = {
  staging: ['staged', 'submitted', 'refused', 'abandoned'],
  staged: ['uploaded', 'creating', 'submitted', 'refused', 'abandoned'],
  uploaded: ['creating', 'submitted', 'refused', 'abandoned'],
  creating: ['submitted', 'refused', 'abandoned'],
  submitted: ['ended', 'refused', 'abandoned'],
  ended: ['collected', 'abandoned'],
  collected: ['released'],
  refused: ['released'],
  abandoned: ['released'],
  released: [],
};

/** Steps from which `to` may be written. Every SQL statement that sets a step checks it. */
export function stepsBefore(to: JobStep): JobStep[] {
  return JOB_STEPS.filter((from) => NEXT[from].includes(to));
}

/** Steps in which an attempt may try to create the job. */
export const CREATABLE_STEPS = ['staged', 'uploaded', 'creating'] as const satisfies JobStep[];

/** Steps after which the job brings no more answers; only the janitor still looks at it. */
const SETTLED_STEPS = [
  'collected',
  'refused',
  'abandoned',
  'released',
] as const satisfies JobStep[];

/** Whether the job brings no more answers. */
export function isSettled(step: JobStep): boolean {
  return (SETTLED_STEPS as readonly JobStep[]).includes(step);
}

/** How a job ended. All but `failed` may have brought answers; `partial_complete` lacks some lines. */
export const JOB_OUTCOMES = [
  'completed',
  'partial_complete',
  'failed',
  'expired',
  'cancelled',
] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];
