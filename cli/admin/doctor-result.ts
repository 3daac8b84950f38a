/** Result of one check, ready to be shown. */
export interface CheckResult {
  readonly isOk: boolean;
  /** It passed, but something is worth a look. */
  readonly isWarning?: boolean;
  readonly text: string;
}

/** The result of a check that passed. */
export function passed(text: string): CheckResult {
  return { isOk: true, text };
}

/** The result of a check that passed, with something to look at. */
export function warned(text: string): CheckResult {
  return { isOk: true, isWarning: true, text };
}

/** The result of a check that failed. */
export function failed(text: string): CheckResult {
  return { isOk: false, text };
}

/** One check, one line in the doctor's table. */
export interface Check {
  readonly name: string;
  /** Returns the text for a passed check, or a result. @throws an error whose message is the text for a failed one */
  run(): Promise<string | CheckResult>;
  /** What to do if it fails. */
  readonly advice: string;
  /** Default 15 s. */
  readonly timeoutMs?: number;
}
