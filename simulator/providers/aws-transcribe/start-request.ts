import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';

const s3Uri = z.string().regex(/^s3:\/\/[^/]+\/.+$/, 'must be an S3 URI');

const schema = z
  .strictObject({
    TranscriptionJobName: z.string().regex(/^[0-9a-zA-Z._-]{1,200}$/),
    LanguageCode: z.string().min(1).optional(),
    IdentifyLanguage: z.boolean().optional(),
    Media: z.strictObject({ MediaFileUri: s3Uri }),
    MediaFormat: z.enum(['mp3', 'mp4', 'wav', 'flac', 'ogg', 'amr', 'webm', 'm4a']).optional(),
    OutputBucketName: z.string().min(3),
    OutputKey: z.string().min(1).max(1024),
    ModelSettings: z.strictObject({ LanguageModelName: z.string().min(1) }).optional(),
    JobExecutionSettings: z
      .strictObject({ AllowDeferredExecution: z.boolean(), DataAccessRoleArn: z.string().min(1) })
      .optional(),
  })
  .refine(
    ({ LanguageCode: code, IdentifyLanguage: identify = false }) =>
      (code === undefined) === identify,
    'Specify exactly one of LanguageCode and IdentifyLanguage',
  );

const list = z.strictObject({
  NextToken: z.string().default(''),
  MaxResults: z.int().min(1).max(100).default(5),
  JobNameContains: z.string().default(''),
  Status: z.enum(['QUEUED', 'IN_PROGRESS', 'FAILED', 'COMPLETED']).optional(),
});

/** A valid request for a list of jobs. */
export interface ListRequest {
  /** The name after which the page begins; empty for the first page. */
  readonly after: string;
  readonly limit: number;
  /** A part of the names; empty for all. */
  readonly text: string;
  readonly status: string | undefined;
}

/** A valid request for a transcription job. */
export type StartRequest = z.infer<typeof schema>;

/** Reads the body of `StartTranscriptionJob`, as far as the simulator supports it. @throws invalid_request */
export function readStart(body: Buffer): StartRequest {
  const parsed = schema.safeParse(readBody(body));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw new NightshiftError('invalid_request', `${at}: ${issue?.message ?? 'invalid'}`);
}

/** The name of a job in the body of any other call. @throws invalid_request */
export function readJobName(body: Buffer): string {
  const parsed = z
    .strictObject({ TranscriptionJobName: z.string().min(1) })
    .safeParse(readBody(body));
  if (parsed.success) return parsed.data.TranscriptionJobName;
  throw new NightshiftError('invalid_request', 'TranscriptionJobName is required');
}

/** The members of the body of a list. @throws invalid_request */
export function readList(body: Buffer): ListRequest {
  const parsed = list.safeParse(readBody(body));
  if (!parsed.success) throw new NightshiftError('invalid_request', 'the list is malformed');
  const {
    NextToken: after,
    MaxResults: limit,
    JobNameContains: text,
    Status: status,
  } = parsed.data;
  return { after, limit, text, status };
}

function readBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (cause) {
    throw new NightshiftError('invalid_request', 'the body must be JSON', { cause });
  }
}
