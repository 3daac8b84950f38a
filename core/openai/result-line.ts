import { asciiJsonString } from './ascii-json';
import type { EmbeddedAnswer } from './embedded-answer';

/**
 * The codes of lines without an HTTP answer, and their messages
 * (docs/design/api-contract.md#lines-without-an-answer).
 */
export const LINE_ERROR_CODES = {
  request_timeout: 'The model server did not answer this request in time.',
  connection_error:
    'The model server could not be reached, or the connection broke before the answer was complete.',
  response_too_large: 'The answer to this request was larger than this service accepts.',
  model_not_found: 'No model server serves the model of this request.',
  input_file_not_found:
    'The file `body.file_id` was not found when the batch began: it does not exist, was deleted, or has expired.',
  batch_cancelled: 'This request was not executed, because the batch was cancelled.',
  batch_expired: 'This request could not be executed before the completion window expired.',
  batch_failed: 'This request was not executed, because the batch failed.',
  internal_error:
    'This request could not be executed, because its worker failed repeatedly while executing it.',
  provider_failed: 'The provider did not run this request, because it refused or failed its job.',
  provider_expired: 'The provider did not answer this request in time.',
  provider_missing_result: 'The provider finished its job without an answer to this request.',
} as const;

export type LineErrorCode = keyof typeof LINE_ERROR_CODES;

/** A request and the answer it got. */
export interface AnswerLineInput {
  /** `batch_req_…`, unique in the batch. It needs no escapes. */
  readonly lineId: string;
  readonly customId: string;
  readonly status: number;
  /** The model server's own request id. If null or empty, `lineId` is used, the id that we sent. */
  readonly requestId: string | null;
  readonly embedded: EmbeddedAnswer;
}

/** A request and the reason why it has no answer. */
export interface ErrorLineInput {
  readonly lineId: string;
  readonly customId: string;
  readonly code: LineErrorCode;
  /** The message of `code` by default. */
  readonly message?: string;
}

const ANSWER_TAIL = Buffer.from('},"error":null}');

/** A line of the output file, or of the error file unless `ok`: ASCII, without a newline. */
export function answerLine(input: AnswerLineInput): Buffer {
  const [head, ...rest] = answerLinePieces(input);
  return Buffer.concat([Buffer.from(head, 'latin1'), ...rest]);
}

/** The line of {@link answerLine} in pieces, so that an answer is copied once, to where the line is stored. */
export function answerLinePieces(
  input: AnswerLineInput,
): readonly [head: string, json: Buffer, tail: Buffer] {
  const { status, embedded, requestId, lineId } = input;
  const id = requestId ? asciiJsonString(requestId) : `"${lineId}"`;
  const response = `"response":{"status_code":${status},"request_id":${id},"body":`;
  return [`${names(input)},${response}`, embedded.json, ANSWER_TAIL];
}

/** A line of the error file for a request without an HTTP answer: ASCII, without a newline. */
export function errorLine(input: ErrorLineInput): Buffer {
  const message = asciiJsonString(input.message ?? LINE_ERROR_CODES[input.code]);
  const error = `"error":{"code":"${input.code}","message":${message}}`;
  return Buffer.from(`${names(input)},"response":null,${error}}`, 'latin1');
}

function names({ lineId, customId }: { lineId: string; customId: string }): string {
  return `{"id":"${lineId}","custom_id":${asciiJsonString(customId)}`;
}
