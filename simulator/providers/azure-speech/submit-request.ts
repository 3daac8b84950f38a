import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';
import { readJson } from '../json-payload';

const locale = z.string().regex(/^[a-z]{2,3}-[A-Z][\w-]+$/, 'must be a locale');

const schema = z.strictObject({
  displayName: z.string().min(1),
  locale,
  contentUrls: z.array(z.url()).min(1).max(1_000),
  properties: z.strictObject({
    timeToLiveHours: z.int().min(6).max(744),
    wordLevelTimestampsEnabled: z.boolean().optional(),
    displayFormWordLevelTimestampsEnabled: z.boolean().optional(),
    profanityFilterMode: z.enum(['None', 'Removed', 'Tags', 'Masked']).optional(),
    languageIdentification: z
      .strictObject({ candidateLocales: z.array(locale).min(2).max(10) })
      .optional(),
  }),
});

/** A valid request for a transcription. */
export type SubmitRequest = z.infer<typeof schema>;

/** Reads the body of a submit, as far as the simulator supports it. @throws invalid_request */
export function readSubmit(body: Buffer): SubmitRequest {
  const parsed = schema.safeParse(readJson(body, 'the body must be JSON'));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw new NightshiftError('invalid_request', `${at}: ${issue?.message ?? 'invalid'}`);
}
