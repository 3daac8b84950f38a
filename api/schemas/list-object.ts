import type { Page } from '../../storage/postgres/list-page';

/** OpenAI's list envelope: all five keys always, ids null on an empty page (contract §1.4). */
export interface ListObject<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** The envelope of one page. */
export function toListObject<R, T extends { readonly id: string }>(
  page: Page<R>,
  toWire: (record: R) => T,
): ListObject<T> {
  const data = page.data.map(toWire);
  return {
    object: 'list',
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: page.hasMore,
  };
}
