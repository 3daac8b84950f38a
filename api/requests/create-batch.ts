import { z } from 'zod';
import { HOPS_KEY, hopsOf, MAX_HOPS } from '../../core/delegation/hops';
import { isJsonObject } from '../../core/openai/json-object';
import { checkRequest } from './check-request';
import { COMPLETION_WINDOW, completionWindowSec } from './completion-window';
import { fault } from './faults';
import { expiresAfter, requiredChoice, requiredText, textUpTo, withCode } from './fields';

/** A checked body of `POST /batches`, without its `input_file_id`. */
export interface CreateBatch {
  readonly endpoint: string;
  readonly completionWindow: string;
  readonly windowSec: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly outputExpiresAfterSec: number | null;
}

const METADATA_PAIRS = 16;
const WINDOW = "'24h', or another duration from 1s to 30d";

/** No file has a longer id. PostgreSQL text cannot contain NUL. */
const FILE_ID = /^[^\u0000]{1,255}$/;

const METADATA_VALUE = textUpTo(512, 'a string of at most 512 characters');

const metadata = z
  .unknown()
  .refine((value) => !isJsonObject(value) || Object.keys(value).length <= METADATA_PAIRS, {
    error: ({ input }) =>
      `at most ${METADATA_PAIRS} properties, got ${Object.keys(input as object).length}`,
    ...withCode('object_above_max_properties'),
  })
  // `z.record` skips the key `__proto__`, which JSON may contain.
  .check(({ value, issues }) => {
    if (!isJsonObject(value) || !Object.hasOwn(value, '__proto__')) return;
    const { error } = METADATA_VALUE.safeParse(value['__proto__'], { reportInput: true });
    for (const issue of error?.issues ?? []) {
      issues.push({ ...issue, input: issue.input, path: ['__proto__'] } as never);
    }
  })
  .pipe(
    z
      .record(textUpTo(64, 'at most 64 characters'), METADATA_VALUE, {
        error: 'an object of strings',
      })
      .meta({ maxProperties: METADATA_PAIRS })
      .nullable(),
  )
  .optional();

/** Body of `POST /batches`, for the endpoints that this installation serves. */
export function createBatchBody(endpoints: readonly string[]) {
  const listed = endpoints.map((endpoint) => `'${endpoint}'`).join(', ');
  return z
    .strictObject({
      input_file_id: requiredText().regex(FILE_ID, { error: 'the id of a file' }),
      endpoint: requiredChoice(endpoints, `one of ${listed}`),
      completion_window: requiredText()
        .regex(COMPLETION_WINDOW, { error: WINDOW })
        .refine((text) => completionWindowSec(text) !== null, {
          error: WINDOW,
          ...withCode('invalid_value'),
        })
        .meta({ description: '24h, or another duration from 1s to 30d' }),
      metadata,
      output_expires_after: expiresAfter().nullish(),
    })
    .meta({ id: 'CreateBatch' });
}

/** The schema that {@link createBatchBody} returns. */
type CreateBatchBody = ReturnType<typeof createBatchBody>;

/** The input file id, which is checked before all other fields. @throws invalid_request */
export function parseInputFileId(schema: CreateBatchBody, body: unknown): string {
  return checkRequest(schema.pick({ input_file_id: true }).strip(), body).input_file_id;
}

/** Checks the whole body and returns all fields except `input_file_id`. @throws invalid_request */
export function parseCreateBatch(
  schema: CreateBatchBody,
  body: Readonly<Record<string, unknown>>,
): CreateBatch {
  const checked = checkRequest(schema, body);
  const completionWindow = checked.completion_window;
  const metadata = (body['metadata'] ?? null) as CreateBatch['metadata'];
  checkHops(metadata);
  return {
    endpoint: checked.endpoint,
    completionWindow,
    windowSec: completionWindowSec(completionWindow) ?? NaN,
    metadata,
    outputExpiresAfterSec: checked.output_expires_after?.seconds ?? null,
  };
}

/** Installations that delegate a model to each other would pass a batch on for ever. @throws invalid_request */
function checkHops(metadata: CreateBatch['metadata']): void {
  const hops = hopsOf(metadata);
  if (hops <= MAX_HOPS) return;
  const message = `This batch was passed on ${hops} times, and at most ${MAX_HOPS} are allowed. Check the providers of type 'nightshift' in the settings of the installations that passed it on: they may delegate to each other.`;
  throw fault('delegation_loop', `metadata.${HOPS_KEY}`, message);
}
