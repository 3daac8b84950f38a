import { NightshiftError } from '../../core/errors';
import { redactUrl, type Config } from '../../platform/config';
import type { GatewayConfig } from '../../platform/config-schema';
import type { AudioPage } from '../../platform/audio-page';
import type { FlowPage } from '../../platform/flow-page';
import { urlHost } from '../../embedded/url-host';
import { audioFindings } from './audio-findings';
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
          {
            name: 'audio',
            run: () => checkAudio(gateway, config),
            advice:
              'nightshift audio workers shows the workers; docs/audio.md#batches has the settings',
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

/** @throws config_invalid if the settings cost lines their tries */
async function checkAudio(
  gateway: GatewayConfig,
  { gateway: { observability_port: port } }: Config,
): Promise<string | CheckResult> {
  const page = await readAudioPage(gateway, port);
  if (page === null || page.workers.length === 0) {
    return `${redactUrl(gateway.url)} shows no audio workers here`;
  }
  const { errors, warnings } = audioFindings(gateway, page);
  if (errors.length > 0) throw new NightshiftError('config_invalid', errors.join('; '));
  if (warnings.length > 0) return warned(warnings.join('; '));
  return `${page.workers.length} audio workers of ${redactUrl(gateway.url)} serve`;
}

/** The page of the gateway; null if it cannot be read from here. */
async function readPage(gateway: GatewayConfig, port: number): Promise<FlowPage | null> {
  const page = (await readJson(gateway, { port, path: '/admin/flow' })) as Partial<FlowPage> | null;
  const pools = page?.pools;
  if (!Array.isArray(pools)) return null;
  return { receiving_bytes: 0, pools: pools.filter(({ limits }) => limits !== undefined) };
}

async function readAudioPage(gateway: GatewayConfig, port: number): Promise<AudioPage | null> {
  const page = (await readJson(gateway, { port, path: '/admin/audio' })) as AudioPage | null;
  return Array.isArray(page?.workers) && page.limits !== undefined ? page : null;
}

/** Null if there is no such page. */
async function readJson(
  { url }: GatewayConfig,
  { port, path }: { readonly port: number; readonly path: string },
): Promise<unknown> {
  const host = urlHost(new URL(url).hostname.replace(/^\[|\]$/g, ''));
  try {
    const signal = AbortSignal.timeout(PAGE_TIMEOUT_MS);
    const answer = await fetch(`http://${host}:${port}${path}`, { signal });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
