import type { ReportFault } from './input-errors';
import { kindOf } from './input-values';

type Members = Readonly<Record<string, unknown>>;

/** Ids of files are shorter by far; longer texts are kept out of look-ups. */
const MAX_FILE_ID = 64;
const BASE64 = /^(?:data:[^,]{0,200};base64,)?[A-Za-z0-9+/]+={0,2}$/;
const ABSENT: ReadonlySet<unknown> = new Set([undefined, null]);

/**
 * Checks how a request names its recording: by exactly one of `file_id`, and `file_data` with `filename`
 * (docs/design/api-contract.md#recordings). Returns the id of the file; null if the request has the bytes, or a fault.
 */
export function checkAudio(body: Members, report: ReportFault): string | null {
  for (const name of ['file', 'url']) {
    if (ABSENT.has(body[name])) continue;
    const message =
      `\`body.${name}\` is not possible in a batch: nothing is fetched from other addresses. ` +
      'Upload the recording and name it in `body.file_id`.';
    report('invalid_request', message, `body.${name}`);
    return null;
  }
  const { file_id: fileId, file_data: data } = body;
  if (ABSENT.has(fileId) === ABSENT.has(data)) {
    const message = ABSENT.has(fileId)
      ? 'Missing required parameter: `body.file_id`, or `body.file_data` with `body.filename`.'
      : 'Only one of `body.file_id` and `body.file_data` can name the recording.';
    const code = ABSENT.has(fileId) ? 'missing_required_parameter' : 'invalid_request';
    report(code, message, 'body.file_id');
    return null;
  }
  if (!ABSENT.has(fileId)) return checkFileId(fileId, report);
  checkFileData(body, report);
  return null;
}

function checkFileId(value: unknown, report: ReportFault): string | null {
  if (typeof value === 'string' && value !== '' && value.length <= MAX_FILE_ID) return value;
  const found = typeof value === 'string' ? (value === '' ? 'empty' : 'longer') : kindOf(value);
  const message = `\`body.file_id\` must be the id of a file, of 1 to ${MAX_FILE_ID} characters; it is ${found}.`;
  report('invalid_request', message, 'body.file_id');
  return null;
}

function checkFileData({ file_data: data, filename }: Members, report: ReportFault): void {
  if (typeof data !== 'string' || !BASE64.test(data)) {
    const message = '`body.file_data` must be the bytes of the recording in base64, or a data URL.';
    report('invalid_request', message, 'body.file_data');
  }
  if (typeof filename === 'string' && filename !== '') return;
  const message = 'Missing required parameter: `body.filename`, which `body.file_data` needs.';
  report('missing_required_parameter', message, 'body.filename');
}
