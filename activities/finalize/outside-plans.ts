import { isJsonObject } from '../../core/openai/json-object';
import type { LineErrorCode } from '../../core/openai/result-line';
import type { InputFiles } from '../../core/plan/input-files';

/**
 * Why ingestion has put a line into no plan (docs/design/batch-path.md#files-of-requests). It decides from the
 * same files as ingestion, so each merge writes the same code.
 * @param files null if requests of the endpoint name none
 */
export function codeOutsidePlans(line: Buffer, files: InputFiles | null): LineErrorCode {
  if (files === null) return 'model_not_found';
  const value: unknown = JSON.parse(line.toString('utf8'));
  const body = isJsonObject(value) ? value['body'] : null;
  const fileId = isJsonObject(body) ? body['file_id'] : null;
  const isUnknown = typeof fileId === 'string' && !files.has(fileId);
  return isUnknown ? 'input_file_not_found' : 'model_not_found';
}
