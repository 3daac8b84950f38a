import type { Command } from 'commander';
import type { Environment } from '../../platform/config';
import { withoutTrailingSlashes } from '../../platform/http-client/base-url';

/** Flags of commands that send audio to the gateway. */
export interface GatewayFlags {
  readonly gatewayUrl: string;
  readonly apiKey?: string;
}

/** Where the gateway is. */
export interface GatewayAccess {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly apiKey: string | null;
  /** Whether the user named it. Otherwise it gets no secrets of the environment. */
  readonly isNamedByUser: boolean;
}

const DEFAULT_GATEWAY_URL = 'http://127.0.0.1:8002/v1';

/** Adds the flags of {@link GatewayFlags} to a command. */
export function withGatewayFlags(command: Command): Command {
  return command
    .option('--gateway-url <url>', 'base URL of the gateway', DEFAULT_GATEWAY_URL)
    .option(
      '--api-key <key>',
      'API key (env OPENAI_API_KEY is safer, for a gateway that you name)',
    );
}

/** Any program may listen at the default address, so it gets no key of the environment. */
export function gatewayAccess(
  { gatewayUrl, apiKey }: GatewayFlags,
  env: Environment,
): GatewayAccess {
  const isNamedByUser = gatewayUrl !== DEFAULT_GATEWAY_URL;
  return {
    url: withoutTrailingSlashes(gatewayUrl),
    apiKey: apiKey ?? ((isNamedByUser && env['OPENAI_API_KEY']) || null),
    isNamedByUser,
  };
}
