import { isAudioEndpoint } from '../../core/openai/endpoints';
import type { GatewayConfig } from '../../platform/config-schema';

/** How long one request of the endpoint may take at a gateway, ms: audio takes longer than text. */
export function requestTimeoutOf(
  gateway: Pick<GatewayConfig, 'request_timeout' | 'audio_request_timeout'>,
  endpoint: string,
): number {
  return isAudioEndpoint(endpoint) ? gateway.audio_request_timeout : gateway.request_timeout;
}
