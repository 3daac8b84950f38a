import { hasEnded } from '../job-end';
import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  JobToFind,
  MarkedJob,
  MarkerToList,
} from '../provider';
import { eachPage } from '../token-pages';
import type { VertexApi } from './api';
import type { VertexJob } from './job-object';
import { isOurs, jobFilter, markerFilter, markedJobId } from './job-request';

/** Looks a job up. The filter is exact, so others on its pages are of installations with the same job id. */
export async function findJob(
  api: VertexApi,
  job: JobToFind,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  let found: VertexJob | undefined;
  const listed = await eachPage(
    (token) => api.page(jobFilter(job), token, call),
    (jobs) => {
      found = jobs.find(({ labels }) => isOurs(labels, job));
      return found === undefined;
    },
  );
  if (listed.outcome !== 'ok') return listed;
  const value: FoundJob =
    found === undefined ? { kind: 'none' } : { kind: 'job', job: found.created };
  return { outcome: 'ok', value };
}

/** The jobs of an installation that have not ended (docs/design/delegation.md#orphans). */
export async function listMarked(
  api: VertexApi,
  marker: MarkerToList,
  call: CallOptions,
): Promise<IdempotentResult<MarkedJob[]>> {
  const marked: MarkedJob[] = [];
  const listed = await eachPage(
    (token) => api.page(markerFilter(marker), token, call),
    (jobs) => {
      for (const { status, labels } of jobs) {
        const jobId = markedJobId(labels, marker.storeId);
        if (hasEnded(status.state) || jobId === null) continue;
        marked.push({ externalId: status.externalId, jobId });
      }
      return true;
    },
  );
  return listed.outcome === 'ok' ? { outcome: 'ok', value: marked } : listed;
}
