import type { ConnectionOptions } from '@temporalio/client';
import {
  readCredentials,
  type TemporalConfig,
  type TemporalCredentials,
} from './temporal-credentials';

/**
 * By default gRPC doubles its pause after each failed connect, up to two minutes, and calls do not shorten
 * it. After an outage, clients could then take two more minutes to reconnect.
 */
const RECONNECT = {
  'grpc.initial_reconnect_backoff_ms': 250,
  'grpc.max_reconnect_backoff_ms': 1_000,
} as const;

/** Address, TLS and API key of the server as SDK options. @throws config_invalid */
export function connectionOptions(
  config: TemporalConfig,
  credentials: TemporalCredentials = readCredentials(config),
): ConnectionOptions {
  const { apiKey, tls } = credentials;
  return {
    address: config.address,
    channelArgs: RECONNECT,
    ...(apiKey === null ? {} : { apiKey }),
    // Always given: the SDK turns TLS on if it is missing and there is an API key.
    tls: tls ?? false,
  };
}
