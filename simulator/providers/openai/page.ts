import { NightshiftError } from '../../../core/errors';
import { invalid } from '../../request';

/** Bounds of `limit`. */
export interface PageLimit {
  readonly max: number;
  /** If the query has none. */
  readonly preset: number;
  /** The host sends smaller pages than it is asked for. */
  readonly cap?: number;
}

/** A page of a list, after the entry that `after` names. @throws invalid_request, not_found */
export function pageOf<Entry extends { readonly id: string }>(
  entries: readonly Entry[],
  query: URLSearchParams,
  { max, preset, cap = max }: PageLimit,
  show: (entry: Entry) => unknown,
): Record<string, unknown> {
  const limit = Number(query.get('limit') ?? preset);
  if (!Number.isInteger(limit) || limit < 1 || limit > max) {
    throw invalid('limit', `limit must be a whole number from 1 to ${max}`);
  }
  const after = query.get('after');
  const start = after === null ? 0 : entries.findIndex(({ id }) => id === after) + 1;
  if (after !== null && start === 0) {
    throw new NightshiftError('not_found', `No entry found with id '${after}'.`, {
      param: 'after',
    });
  }
  const page = entries.slice(start, start + Math.min(limit, cap));
  return {
    object: 'list',
    data: page.map(show),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: start + page.length < entries.length,
  };
}
