import { z } from 'zod';

/** Body of every answer that is not a success (docs/design/api-contract.md#error-envelope). */
export const errorShape = z
  .strictObject({
    error: z.strictObject({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .meta({ id: 'Error' });
