import { readFileSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import type { ConnectionOptions } from '@temporalio/client';
import type { Config } from '../platform/config-schema';

/** The settings below `temporal`. */
export type TemporalConfig = Config['temporal'];

/**
 * A client whose connection is made at its first call, so that a process starts and answers while
 * Temporal is away. The caller closes `client.connection`.
 */
export function openClient(config: TemporalConfig): Client {
  return new Client({
    connection: Connection.lazy(connectionOptions(config)),
    namespace: config.namespace,
  });
}

/**
 * gRPC waits longer after each failure to connect, up to two minutes, whoever calls meanwhile: a server
 * that is back would not be heard of for as long again as it was away.
 */
const RECONNECT = {
  'grpc.initial_reconnect_backoff_ms': 250,
  'grpc.max_reconnect_backoff_ms': 1_000,
} as const;

/** Address, TLS and key of the server, in the SDK's words. */
export function connectionOptions(config: TemporalConfig): ConnectionOptions {
  return {
    address: config.address,
    channelArgs: RECONNECT,
    ...(config.api_key === undefined ? {} : { apiKey: config.api_key }),
    tls: tlsOptions(config.tls),
  };
}

function tlsOptions(tls: TemporalConfig['tls']): NonNullable<ConnectionOptions['tls']> {
  if (typeof tls === 'boolean') return tls;
  const { ca_cert_file: ca, client_cert_file: cert, client_key_file: key } = tls;
  return {
    ...(ca === undefined ? {} : { serverRootCACertificate: readFileSync(ca) }),
    ...(cert === undefined || key === undefined
      ? {}
      : { clientCertPair: { crt: readFileSync(cert), key: readFileSync(key) } }),
  };
}
