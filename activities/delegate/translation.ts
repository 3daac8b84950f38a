import type { DelegateConfig } from '../../platform/config-providers';
import type { TranslationOptions } from '../../providers/provider';

const DEFAULT_MAX_TOKENS = 4_096;

/** How lines of a model are translated. `delegate` is undefined if the settings have dropped it meanwhile. */
export function translationOf(delegate: DelegateConfig | undefined): TranslationOptions {
  return {
    dropParams: delegate?.drop_params ?? false,
    defaultMaxTokens: delegate?.default_max_tokens ?? DEFAULT_MAX_TOKENS,
    extraBody: delegate?.extra_body ?? {},
  };
}
