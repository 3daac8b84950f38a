import { z } from 'zod';
import { invalid } from '../../request';
import { readJson } from '../json-payload';

const address = z.string().regex(/^gs:\/\/[^/]+\/.+$/, 'expected the URI of an object');
const schema = z.strictObject({
  config: z.strictObject({
    autoDecodingConfig: z.strictObject({}),
    model: z.string().min(1),
    languageCodes: z.array(z.string().min(1)).min(1),
    features: z.strictObject({
      enableWordTimeOffsets: z.boolean().optional(),
      enableAutomaticPunctuation: z.boolean().optional(),
    }),
  }),
  files: z
    .array(z.strictObject({ uri: address }))
    .min(1)
    .max(15),
  recognitionOutputConfig: z.strictObject({ gcsOutputConfig: z.strictObject({ uri: address }) }),
  processingStrategy: z.literal('DYNAMIC_BATCHING').optional(),
});

/** A valid request for a job. */
export type RecognizeRequest = z.output<typeof schema>;

/** Reads the body of a create, as far as the simulator supports it. @throws invalid_request */
export function readRecognize(body: Buffer): RecognizeRequest {
  const parsed = schema.safeParse(readJson(body, 'Invalid JSON payload received.'));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = issue?.path.join('.') ?? '';
  throw invalid(param, `Invalid value at '${param}': ${issue?.message ?? 'invalid'}`);
}
