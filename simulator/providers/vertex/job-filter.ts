import { invalid } from '../../request';
import type { StoredJob } from '../job-store';
import type { CreateRequest } from './create-request';

type Test = (job: StoredJob) => boolean;

const LABEL = /^labels\.([a-z0-9_-]+)="?([a-z0-9_-]*)"?$/;
const SINCE = /^create_time>="([^"]+)"$/;

/** Reads a filter such as `labels.a=b AND create_time>="2030-01-01T00:00:00Z"`. @throws invalid_request for any other */
export function jobFilter(filter: string): Test {
  const terms = filter === '' ? [] : filter.split(' AND ').map(readTerm);
  return (job) => terms.every((holds) => holds(job));
}

function readTerm(term: string): Test {
  const [, key, value] = LABEL.exec(term.trim()) ?? [];
  if (key !== undefined) return ({ request }) => labelOf(request, key) === value;
  const [, since = ''] = SINCE.exec(term.trim()) ?? [];
  const sinceMs = Date.parse(since);
  if (!Number.isNaN(sinceMs)) return ({ createdMs }) => createdMs >= sinceMs;
  throw invalid('filter', `Invalid filter: '${term}'. Only labels and create_time are simulated.`);
}

function labelOf({ labels }: StoredJob['request'], key: string): unknown {
  return (labels as CreateRequest['labels'] | undefined)?.[key];
}
