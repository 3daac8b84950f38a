import type { Config } from '../platform/config';

/** How long requests in flight may take after a drain began, ms. `auto` is the longest request timeout plus 15 s to journal the last answers. */
export function drainBudgetOf(config: Config): number {
  if (config.worker.drain_budget !== 'auto') return config.worker.drain_budget;
  const gateways = [config.global_inference_gateway, ...Object.values(config.model_gateways ?? {})];
  const longest = Math.max(0, ...gateways.map((gateway) => gateway?.request_timeout ?? 0));
  return longest + 15_000;
}
