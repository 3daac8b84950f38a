/** A broken rule of the configuration: the setting to report, and a message that says what to do. */
export interface RuleBreak {
  readonly path: readonly string[];
  readonly message: string;
}
