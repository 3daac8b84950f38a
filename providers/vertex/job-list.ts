import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  JobToFind,
  MarkedJob,
  MarkerToList,
} from '../provider';
import type { JobPage, VertexApi } from './api';
import { hasEnded, type VertexJob } from './job-object';
import { isOurs, jobFilter, markerFilter, markedJobId } from './job-request';

/** Looks a job up. The filter is exact, so others on its pages are of installations with the same job id. */
export async function findJob(
  api: VertexApi,
  job: JobToFind,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  let found: VertexJob | undefined;
  const listed = await eachPage(api, jobFilter(job), call, ({ jobs }) => {
    found = jobs.find(({ labels }) => isOurs(labels, job));
    return found === undefined;
  });
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
  const listed = await eachPage(api, markerFilter(marker), call, ({ jobs }) => {
    for (const { status, labels } of jobs) {
      const jobId = markedJobId(labels, marker.storeId);
      if (hasEnded(status.state) || jobId === null) continue;
      marked.push({ externalId: status.externalId, jobId });
    }
    return true;
  });
  return listed.outcome === 'ok' ? { outcome: 'ok', value: marked } : listed;
}

/** Reads the pages of a filtered list, as long as `take` returns true. */
async function eachPage(
  api: VertexApi,
  filter: string,
  call: CallOptions,
  take: (page: JobPage) => boolean,
): Promise<IdempotentResult<true>> {
  for (let token: string | null = null; ;) {
    const page: IdempotentResult<JobPage> = await api.page(filter, token, call);
    if (page.outcome !== 'ok') return page;
    if (!take(page.value) || page.value.next === null) return { outcome: 'ok', value: true };
    token = page.value.next;
  }
}
