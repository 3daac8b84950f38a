import { z } from 'zod';
import { invalid } from '../../request';
import { readJson } from '../json-payload';

/** https://cloud.google.com/vertex-ai/docs/general/labels-bigquery: keys and values of labels. */
const label = z.string().regex(/^[a-z0-9_-]{0,63}$/);
const address = z.string().regex(/^gs:\/\/[^/]+\/.+$/, 'expected the URI of an object');
const schema = z.strictObject({
  displayName: z.string().min(1).max(128),
  model: z.string().regex(/^(publishers|projects)\/.+$/, 'expected the path of a model'),
  inputConfig: z.strictObject({
    instancesFormat: z.literal('jsonl'),
    gcsSource: z.strictObject({ uris: z.array(address).length(1) }),
  }),
  outputConfig: z.strictObject({
    predictionsFormat: z.literal('jsonl'),
    gcsDestination: z.strictObject({ outputUriPrefix: address }),
  }),
  labels: z.record(label, label).default({}),
});

/** A valid request for a job. */
export type CreateRequest = z.output<typeof schema>;

/** Reads the body of a create. @throws invalid_request */
export function readCreate(body: Buffer): CreateRequest {
  const parsed = schema.safeParse(readJson(body, 'Invalid JSON payload received.'));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = issue?.path.join('.') ?? '';
  throw invalid(param, `Invalid value at '${param}': ${issue?.message ?? 'invalid'}`);
}
