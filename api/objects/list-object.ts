import { z } from 'zod';
import type { Page } from '../../storage/postgres/list-page';

/** OpenAI's list of one kind of object (docs/design/api-contract.md#pages). */
export const listShape = <T extends z.ZodType>(item: T, id: string) =>
  z
    .strictObject({
      object: z.literal('list'),
      data: z.array(item),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    })
    .meta({ id });

/** A page on the wire. The ids are null if it is empty. */
export interface ListObject<T> extends Readonly<z.infer<ReturnType<typeof listShape>>> {
  readonly data: T[];
}

/** The wire form of a page. */
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
