import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';

const s3Uri = z.string().regex(/^s3:\/\/[^/]+\/.+$/, 'must be an S3 URI');

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_CreateModelInvocationJob.html */
const schema = z.strictObject({
  jobName: z.string().regex(/^[a-zA-Z0-9](-*[a-zA-Z0-9+.]){0,62}$/),
  clientRequestToken: z.string().regex(/^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,255}$/),
  roleArn: z.string().regex(/^arn:aws[^:]*:iam::\d{12}:role\/.+$/, 'must be the ARN of a role'),
  modelId: z.string().min(1).max(2048),
  modelInvocationType: z.literal('Converse'),
  inputDataConfig: z.strictObject({
    s3InputDataConfig: z.strictObject({ s3InputFormat: z.literal('JSONL'), s3Uri }),
  }),
  outputDataConfig: z.strictObject({
    s3OutputDataConfig: z.strictObject({ s3Uri: s3Uri.endsWith('/') }),
  }),
  timeoutDurationInHours: z.int().min(24).max(168),
});

/** A valid request for a batch inference job. */
export type CreateRequest = z.infer<typeof schema>;

/** Reads the body of `CreateModelInvocationJob`, as far as the simulator supports it. @throws invalid_request */
export function readCreate(body: Buffer): CreateRequest {
  const parsed = schema.safeParse(JSON.parse(body.toString('utf8')));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw new NightshiftError('invalid_request', `${at}: ${issue?.message ?? 'invalid'}`);
}
