/** How a model of a plan is delegated. Fixed when its file is read. */
export interface PlannedDelegate {
  /** Name of the provider in the configuration. */
  readonly provider: string;
  /** The provider's task queue. */
  readonly queue: string;
  /** Unix ms from which the batch no longer waits for the provider. */
  readonly giveUpAtMs: number;
  /** How long a cancelled job may take to end, ms. */
  readonly harvestGraceMs: number;
  /** Whether leftovers run at the model's gateway. Otherwise they end with an error code. */
  readonly fallback: boolean;
}
