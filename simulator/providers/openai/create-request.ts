import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';
import { ANSWER_BUILDERS } from '../../answers/builders';
import { lifetimeOf } from './files';
import { readJson } from '../json-payload';

/** `metadata` of a batch. */
export const batchMetadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((metadata) => Object.keys(metadata).length <= 16, 'at most 16 keys');

const schema = z.strictObject({
  input_file_id: z.string().min(1),
  endpoint: z.string().refine((endpoint) => ANSWER_BUILDERS.has(endpoint), 'unknown endpoint'),
  completion_window: z.literal('24h'),
  metadata: batchMetadata.nullish(),
  output_expires_after: z.strictObject({ anchor: z.string(), seconds: z.number() }).nullish(),
});

/** A valid request for a batch. */
export interface CreateRequest {
  readonly input_file_id: string;
  readonly endpoint: string;
  readonly completion_window: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Of the result files, ms; null if they do not expire. */
  readonly lifetimeMs: number | null;
}

/** Reads the body of `POST /batches`. @throws invalid_request as OpenAI does */
export function readCreate(body: Buffer): CreateRequest {
  const parsed = parseRequest(schema, body);
  const { metadata = null, output_expires_after: expiry = null, ...request } = parsed;
  const lifetimeMs = lifetimeOf(expiry?.anchor ?? null, expiry?.seconds ?? null);
  return { ...request, metadata, lifetimeMs };
}

/** The body of a request, by its schema. @throws invalid_request as OpenAI does */
export function parseRequest<Schema extends z.ZodType>(
  schema: Schema,
  body: Buffer,
): z.output<Schema> {
  const parsed = schema.safeParse(readJson(body, 'could not parse the JSON body of your request'));
  if (!parsed.success) throw refused(parsed.error.issues[0]);
  return parsed.data;
}

function refused(issue: z.core.$ZodIssue | undefined): NightshiftError {
  if (issue?.code === 'unrecognized_keys') {
    const [param = ''] = issue.keys;
    const message = `Unknown parameter: '${param}'.`;
    return new NightshiftError('invalid_request', message, {
      param,
      apiCode: 'unknown_parameter',
    });
  }
  const param = issue?.path.join('.') ?? '';
  const message = `Invalid value for '${param}': ${issue?.message ?? 'invalid'}.`;
  return new NightshiftError('invalid_request', message, { param, apiCode: 'invalid_value' });
}
