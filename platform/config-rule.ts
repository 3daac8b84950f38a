/** A broken rule of the configuration: the setting that shows it, and what to do. */
export interface RuleBreak {
  readonly path: readonly string[];
  readonly message: string;
}
