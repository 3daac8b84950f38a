import type { JobToCreate, MarkerToList } from '../provider';

const JOB_KEY = 'nightshift_job';
const STORE_KEY = 'nightshift_store';

/** Where a job reads and writes, as addresses in Cloud Storage. */
export interface JobPlaces {
  readonly input: string;
  readonly output: string;
}

/** The body of a create. Every attempt at a job sends the same one. */
export function createBody(
  job: JobToCreate,
  { input, output }: JobPlaces,
): Readonly<Record<string, unknown>> {
  return {
    displayName: job.jobId,
    model: modelPath(job.model),
    inputConfig: { instancesFormat: 'jsonl', gcsSource: { uris: [input] } },
    outputConfig: { predictionsFormat: 'jsonl', gcsDestination: { outputUriPrefix: output } },
    labels: { [JOB_KEY]: job.jobId, [STORE_KEY]: job.storeId },
  };
}

/** The filter of a list that shows the job, and those of other installations with the same id. */
export function jobFilter({ jobId }: JobToCreate): string {
  return `labels.${JOB_KEY}=${jobId}`;
}

/** The filter of a list that shows the jobs of an installation since a time. */
export function markerFilter({ storeId, sinceMs }: MarkerToList): string {
  return `labels.${STORE_KEY}=${storeId} AND create_time>="${new Date(sinceMs).toISOString()}"`;
}

/** The job of an installation that the labels name; null if they are not the labels of one. */
export function markedJobId(
  labels: Readonly<Record<string, unknown>>,
  storeId: string,
): string | null {
  const { [JOB_KEY]: jobId, [STORE_KEY]: store } = labels;
  return store === storeId && typeof jobId === 'string' ? jobId : null;
}

/** Whether the labels are those of the job (docs/design/providers.md#look-up-of-jobs). */
export function isOurs(labels: Readonly<Record<string, unknown>>, job: JobToCreate): boolean {
  return labels[JOB_KEY] === job.jobId && labels[STORE_KEY] === job.storeId;
}

/** A name without a path is a model of Google; others are tuned models, or those of other publishers. */
function modelPath(model: string): string {
  return model.includes('/') ? model : `publishers/google/models/${model}`;
}
