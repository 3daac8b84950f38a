import type { ScanRules } from './scan-sink';

/** The settings that rules are made of, by their names in the configuration. */
export interface ScanSettings {
  readonly limits: {
    readonly max_line_bytes: number;
    readonly max_requests: number;
    readonly max_inputs: number;
    readonly max_json_depth: number;
    readonly max_json_tokens: number;
  };
  readonly batch: {
    readonly moderation_default_model: string;
    readonly single_model_batches: boolean;
  };
}

/** The rules of input files for an endpoint. */
export function scanRules({ limits, batch }: ScanSettings, endpoint: string): ScanRules {
  return {
    endpoint,
    moderationDefaultModel: batch.moderation_default_model,
    maxLineBytes: limits.max_line_bytes,
    maxRequests: limits.max_requests,
    maxInputs: limits.max_inputs,
    singleModel: batch.single_model_batches,
    json: { maxDepth: limits.max_json_depth, maxTokens: limits.max_json_tokens },
  };
}
