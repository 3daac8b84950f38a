/** Levels of service, the highest first (docs/design/flow-control.md#bands). */
export const BAND = { critical: 0, standard: 1, sheddable: 2 } as const;

/** One of {@link BAND}. */
export type Band = (typeof BAND)[keyof typeof BAND];

/** All bands, the highest first. */
export const BANDS: readonly Band[] = [BAND.critical, BAND.standard, BAND.sheddable];

/** Names of the bands in settings, metrics, logs and spans, by number. */
export const BAND_NAMES: PerBand<keyof typeof BAND> = ['critical', 'standard', 'sheddable'];

/** One value for each band, the highest first. */
export type PerBand<T> = readonly [critical: T, standard: T, sheddable: T];
