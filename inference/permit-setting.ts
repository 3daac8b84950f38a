/** A setting that limits how many requests a worker has open. */
export type PermitSetting = 'concurrency.per_model' | 'max_concurrency' | 'concurrency.global';
