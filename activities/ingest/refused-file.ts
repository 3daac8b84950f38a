import { TEMPORAL_LIMITS } from '../../core/batch/temporal-bounds';
import type { InputError } from '../../core/openai/input-errors';
import type { Config } from '../../platform/config-schema';
import { MAX_CRASHES } from './ingest-attempt';

/** Refuses a file that killed its workers. */
export function unprocessable(): InputError {
  const message =
    `The server went down ${MAX_CRASHES} times while it read only this file, so the file is not read ` +
    'again. Check its longest and most deeply nested lines, or split it into several files.';
  return { code: 'unprocessable_file', message, param: null, line: null };
}

/** Refuses a batch without a usable input file. */
export function unusableFile(): InputError {
  const message =
    'The file `input_file_id` was not found when the batch was created: it does not exist, was ' +
    'deleted, or has expired. Upload it again.';
  return { code: 'invalid_request', message, param: 'file_id', line: null };
}

/** Refuses a batch that exceeds its tenant's limit of waiting requests. */
export function tooManyEnqueued(requests: number, { tenant }: Config['limits']): InputError {
  const most = tenant.max_enqueued_requests ?? 0;
  const message =
    `Enqueued request limit reached: the file has ${requests} requests, and all your batches together ` +
    `may have ${most} requests waiting. Please try again once some batches have ended.`;
  return { code: 'token_limit_exceeded', message, param: null, line: null };
}

/** Refuses a file whose model names are too long together. */
export function modelNamesTooLong(): InputError {
  const message =
    `The names of all models in a batch may have ${TEMPORAL_LIMITS.modelNamesBytes} bytes in total; ` +
    'these have more. Split the file into several files, or use shorter names.';
  return { code: 'too_many_models', message, param: 'body.model', line: null };
}

/** Refuses a file over the size limit, without reading it. */
export function fileTooLarge(size: number, limits: Config['limits']): InputError {
  const message =
    `The input file of a batch may have ${limits.max_file_bytes} bytes; this one has ${size}. ` +
    'Split it into several files.';
  return { code: 'file_too_large', message, param: null, line: null };
}
