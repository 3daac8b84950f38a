import { NightshiftError } from '../../core/errors';
import { redactUrl, type Config } from '../../platform/config';
import type { GatewayConfig } from '../../platform/config-schema';
import type { FlowPage } from '../../platform/flow-page';
import { urlHost } from '../../embedded/url-host';
import { heldFindings } from './held-settings';
import { warned, type Check, type CheckResult } from './doctor-result';

const PAGE_TIMEOUT_MS = 3_000;

/** Checks for each gateway of ours that the worker sends to: those with `send_fairness_header`. */
export function gatewayChecks(config: Config): Check[] {
  const gateways = [config.global_inference_gateway, ...Object.values(config.model_gateways ?? {})];
  const own = gateways.filter((gateway) => gateway?.send_fairness_header === true);
  return [...new Map(own.map((gateway) => [gateway?.url, gateway])).values()].flatMap((gateway) =>
    gateway === undefined
      ? []
      : [
          {
            name: 'held lines',
            run: () => checkHeldLines(gateway, config),
            advice: 'docs/gateway.md#set-up explains how the settings belong together',
          },
        ],
  );
}

/** @throws config_invalid if the settings cost lines their tries */
async function checkHeldLines(
  gateway: GatewayConfig,
  config: Config,
): Promise<string | CheckResult> {
  const page = await readPage(gateway, config.gateway.observability_port);
  const { errors, warnings } = heldFindings(gateway, config, page?.pools ?? []);
  const where = redactUrl(gateway.url);
  if (errors.length > 0) throw new NightshiftError('config_invalid', errors.join('; '));
  if (warnings.length > 0) return warned(warnings.join('; '));
  return page === null
    ? warned(`${where} shows no /admin/flow here, so its limits were not compared`)
    : `the settings of this worker fit ${where}`;
}

/** The page of the gateway; null if it cannot be read from here. */
async function readPage({ url }: GatewayConfig, port: number): Promise<FlowPage | null> {
  const page = `http://${urlHost(new URL(url).hostname.replace(/^\[|\]$/g, ''))}:${port}/admin/flow`;
  try {
    const answer = await fetch(page, { signal: AbortSignal.timeout(PAGE_TIMEOUT_MS) });
    const { pools } = (await answer.json()) as Partial<FlowPage>;
    if (!answer.ok || !Array.isArray(pools)) return null;
    return { receiving_bytes: 0, pools: pools.filter(({ limits }) => limits !== undefined) };
  } catch {
    return null;
  }
}
