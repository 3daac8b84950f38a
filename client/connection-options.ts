import type { ConnectionOptions } from '@temporalio/client';
import {
  readCredentials,
  type TemporalConfig,
  type TemporalCredentials,
} from './temporal-credentials';

/**
 * gRPC waits longer after each failure to connect, up to two minutes, whoever calls meanwhile: a server
 * that is back would not be heard of for as long again as it was away.
 */
const RECONNECT = {
  'grpc.initial_reconnect_backoff_ms': 250,
  'grpc.max_reconnect_backoff_ms': 1_000,
} as const;

/** Address, TLS and key of the server, in the SDK's words. @throws config_invalid */
export function connectionOptions(
  config: TemporalConfig,
  credentials: TemporalCredentials = readCredentials(config),
): ConnectionOptions {
  const { apiKey, tls } = credentials;
  return {
    address: config.address,
    channelArgs: RECONNECT,
    ...(apiKey === null ? {} : { apiKey }),
    // Said even if it is false: with a key and nothing said, the SDK decides by itself.
    tls: tls ?? false,
  };
}
