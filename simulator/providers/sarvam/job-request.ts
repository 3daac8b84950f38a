import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';
import { readJson } from '../json-payload';

const parameters = z.strictObject({
  model: z.string().min(1).optional(),
  language_code: z
    .string()
    .regex(/^([a-z]{2,3}-IN|unknown)$/)
    .optional(),
  with_timestamps: z.boolean().optional(),
});
const initiate = z.strictObject({ job_parameters: parameters });
const files = z.strictObject({
  job_id: z.string().min(1),
  files: z.array(z.string().min(1)).min(1).max(20),
});

/** What a job is asked for. */
export type JobParameters = z.infer<typeof parameters>;

/** Reads the body of an initiation, as far as the simulator supports it. @throws invalid_request */
export function readInitiate(body: Buffer): JobParameters {
  return read(initiate, body).job_parameters;
}

/** Reads the body of a request for addresses. @throws invalid_request */
export function readFiles(body: Buffer): {
  readonly id: string;
  readonly files: readonly string[];
} {
  const { job_id: id, files: names } = read(files, body);
  return { id, files: names };
}

function read<Value>(schema: z.ZodType<Value>, body: Buffer): Value {
  const parsed = schema.safeParse(readJson(body, 'the body must be JSON'));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw new NightshiftError('invalid_request', `${at}: ${issue?.message ?? 'invalid'}`);
}
