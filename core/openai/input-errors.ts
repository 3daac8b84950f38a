/** Codes of faults in an input file (docs/design/api-contract.md#input-errors). */
export type InputErrorCode =
  | 'empty_file'
  | 'invalid_json_line'
  | 'invalid_request'
  | 'missing_required_parameter'
  | 'duplicate_custom_id'
  | 'invalid_url'
  | 'invalid_method'
  | 'mismatched_model'
  | 'streaming_unsupported'
  | 'too_many_tasks'
  | 'file_too_large'
  | 'too_many_inputs'
  | 'too_many_models'
  | 'line_too_long'
  | 'token_limit_exceeded'
  | 'unprocessable_file'
  | 'too_many_errors';

/** Receives one fault of the current line. */
export type ReportFault = (code: InputErrorCode, message: string, param: string) => void;

/** One entry of a failed batch's `errors.data`; `line` counts all lines from 1, null for the whole file. */
export interface InputError {
  readonly code: InputErrorCode;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}

/** Collects faults in bounded memory, however many lines are bad. */
export interface InputErrors {
  /** All faults so far, including those that are only counted. */
  readonly count: number;
  /** Faults of lines must be added in line order. */
  add(error: InputError): void;
  /**
   * At most 100 entries: faults of the whole file first, then faults of lines in line order. If there are
   * more, one further entry with the code `too_many_errors` says how many.
   */
  list(): InputError[];
}

const MAX_ENTRIES = 100;

/** An empty {@link InputErrors}. */
export function createInputErrors(): InputErrors {
  const ofFile: InputError[] = [];
  const ofLines: InputError[] = [];
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(error) {
      count++;
      const entries = error.line === null ? ofFile : ofLines;
      if (entries.length < MAX_ENTRIES) entries.push(error);
    },
    list() {
      const kept = [...ofFile, ...ofLines].slice(0, MAX_ENTRIES);
      return count > kept.length ? [...kept, summary(count - kept.length)] : kept;
    },
  };
}

function summary(further: number): InputError {
  const message = `The input file has ${further} further ${further === 1 ? 'error' : 'errors'}.`;
  return { code: 'too_many_errors', message, param: null, line: null };
}
