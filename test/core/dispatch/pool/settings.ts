import { POOL_DEFAULTS, type PoolSettings } from '../../../../core/dispatch/pool/pool-settings';

/** The default settings with some of them replaced, section by section. */
export function settingsWith(changes: {
  readonly [S in keyof PoolSettings]?: Partial<PoolSettings[S]>;
}): PoolSettings {
  return {
    fairRequestQueue: { ...POOL_DEFAULTS.fairRequestQueue, ...changes.fairRequestQueue },
    requestQueueController: {
      ...POOL_DEFAULTS.requestQueueController,
      ...changes.requestQueueController,
    },
    bands: { ...POOL_DEFAULTS.bands, ...changes.bands },
  };
}
