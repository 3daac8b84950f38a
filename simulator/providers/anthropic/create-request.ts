import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';
import { readJson } from '../json-payload';

/** Limits of a batch (https://platform.claude.com/docs/en/build-with-claude/batch-processing). */
const MAX_REQUESTS = 100_000;
const MAX_BYTES = 256_000_000;

const schema = z.strictObject({
  requests: z
    .array(
      z.strictObject({
        custom_id: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
        params: z.record(z.string(), z.unknown()),
      }),
    )
    .min(1),
});

/** One request of a batch. Its parameters are checked when it runs. */
export type BatchRequest = z.infer<typeof schema>['requests'][number];

/** Reads the body of `POST /v1/messages/batches`. @throws invalid_request as Anthropic does */
export function readCreate(body: Buffer): readonly BatchRequest[] {
  const parsed = schema.safeParse(readJson(body, 'The request body is not valid JSON.'));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw refused(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'invalid'}`);
  }
  const { requests } = parsed.data;
  if (requests.length > MAX_REQUESTS || body.length > MAX_BYTES) {
    throw new NightshiftError('payload_too_large', 'Request exceeds the maximum allowed size.');
  }
  if (new Set(requests.map(({ custom_id: id }) => id)).size < requests.length) {
    throw refused('requests: custom_id must be unique');
  }
  return requests;
}

function refused(message: string): NightshiftError {
  return new NightshiftError('invalid_request', message);
}
