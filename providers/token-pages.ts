import { isJsonObject } from '../core/openai/json-object';
import type { IdempotentResult } from './provider';

/** A page of a list whose next page is named by a token (https://google.aip.dev/158). */
export interface TokenPage<Item> {
  readonly items: readonly Item[];
  /** The token of the next page; null for the last one. */
  readonly next: string | null;
}

/**
 * Reads a page; null if it is none, or has an item that cannot be read: that one may be looked for. An empty list may
 * be absent.
 * @param member the name of the list
 * @param token of this page. A host that ignores it would be asked for the same page forever, so that is no page
 */
export function readTokenPage<Item>(
  json: unknown,
  { member, token }: { readonly member: string; readonly token: string | null },
  readItem: (json: unknown) => Item | null,
): TokenPage<Item> | null {
  if (!isJsonObject(json)) return null;
  const { [member]: list = [], nextPageToken: said = '' } = json;
  if (!Array.isArray(list) || typeof said !== 'string') return null;
  const items = list.flatMap((one: unknown) => readItem(one) ?? []);
  if (items.length < list.length || (said !== '' && said === token)) return null;
  return { items, next: said === '' ? null : said };
}

/** Reads one page after the other, as long as `take` returns true. */
export async function eachPage<Item>(
  read: (token: string | null) => Promise<IdempotentResult<TokenPage<Item>>>,
  take: (items: readonly Item[]) => boolean,
): Promise<IdempotentResult<true>> {
  for (let token: string | null = null; ;) {
    const page = await read(token);
    if (page.outcome !== 'ok') return page;
    if (!take(page.value.items) || page.value.next === null) return { outcome: 'ok', value: true };
    token = page.value.next;
  }
}

/** The query of a page. */
export function pageQuery(token: string | null, pageSize: number): string {
  const next = token === null ? '' : `&pageToken=${encodeURIComponent(token)}`;
  return `pageSize=${pageSize}${next}`;
}
