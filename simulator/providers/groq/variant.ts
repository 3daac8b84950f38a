import { z } from 'zod';
import { NightshiftError } from '../../../core/errors';
import { errorAnswer, jsonAnswer } from '../answer';
import { batchObject } from '../openai/batch-object';
import { batchMetadata, parseRequest } from '../openai/create-request';
import { openAiApi } from '../openai/routes';
import type { BatchView, OpenAiVariant } from '../openai/variant';

const createRequest = z.strictObject({
  input_file_id: z.string().min(1),
  endpoint: z.enum(['/v1/chat/completions', '/v1/audio/transcriptions', '/v1/audio/translations']),
  completion_window: z.string().regex(/^(24h|[1-7]d)$/, 'expected 24h to 7d'),
  metadata: batchMetadata.nullish(),
});

const PAGE = 20;

/** Groq's batch API: https://console.groq.com/docs/batch. */
const GROQ_VARIANT: OpenAiVariant = {
  prefix: 'groq',
  root: '/openai/v1',
  uploadPath: '/files',
  purposes: ['batch'],
  fileMembers: {},
  batchesPath: '/batches',
  namesUnrun: true,
  errorAnswer,
  linesNameUrl: true,
  readCreate: (body) => {
    const { metadata = null, ...request } = parseRequest(createRequest, body);
    return { ...request, metadata, lifetimeMs: null };
  },
  // Usage is not stated.
  shown: (job, { state, nowMs }) => {
    const batch = batchObject(job, state.settings, nowMs);
    delete batch['usage'];
    return batch;
  },
  created: (batch) => jsonAnswer(batch),
  list: (batches, { query, state }) =>
    pageAt(batches, query.get('cursor'), Math.min(PAGE, state.settings.max_page)),
};

/** Groq, below `/providers/groq`. */
export const GROQ_API = openAiApi(GROQ_VARIANT);

/** A page, whose cursor hides the last batch of the page before. */
function pageAt(batches: readonly BatchView[], cursor: string | null, limit: number): unknown {
  const before = batches.findIndex(({ id }) => `cursor_${id}` === cursor);
  if (cursor !== null && before < 0) {
    throw new NightshiftError('invalid_request', 'invalid cursor', { param: 'cursor' });
  }
  const data = batches.slice(before + 1, before + 1 + limit);
  const isLast = before + 1 + data.length >= batches.length;
  const next = isLast ? null : `cursor_${data.at(-1)?.id ?? ''}`;
  return { object: 'list', data, paging: { next_cursor: next } };
}
