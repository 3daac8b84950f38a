import { readFileSync } from 'node:fs';
import { NightshiftError } from '../core/errors';
import { apiKeyFile, readApiKey } from '../platform/api-key-file';
import { redactUrl } from '../platform/config-redact';
import type { AudioWorkerConfig } from '../platform/config-audio';
import type { BackendConfig } from '../platform/config-gateway';

/** The contents of the files that a gateway's settings name: read once at start, never logged. */
export interface GatewaySecrets {
  /** Value of `authorization`, or null without a key. */
  readonly authorization: string | null;
  /** Options of `tls.connect`; empty for Node's defaults. */
  readonly tls: TlsOptions;
}

/** The settings that name TLS files. */
type TlsSettings = BackendConfig | AudioWorkerConfig;

/** TLS files of a gateway, as `tls.connect` takes them. */
export interface TlsOptions {
  readonly rejectUnauthorized?: boolean;
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/**
 * Reads the key and TLS files of one gateway or backend: `api_key_name` is a file in `secretsDir`, `api_key_file` is a
 * path (docs/design/configuration.md#gateway-keys). White space around a key is removed.
 * @throws config_invalid if a file is missing or empty, or both settings name one
 */
export function readGatewaySecrets(gateway: BackendConfig, secretsDir: string): GatewaySecrets {
  const file = apiKeyFile(gateway, secretsDir, `gateway ${redactUrl(gateway.url)}`);
  const key = file === null ? null : readApiKey(file);
  return {
    authorization: key === null ? null : `Bearer ${key}`,
    tls: readTlsFiles(gateway),
  };
}

/** Reads the TLS files of one server. @throws config_invalid if a file is missing */
export function readTlsFiles(server: TlsSettings): TlsOptions {
  return {
    ...(server.tls_insecure_skip_verify && { rejectUnauthorized: false }),
    ...optionalFile('ca', 'tls_ca_cert_file', server.tls_ca_cert_file),
    ...clientCertificate(server),
  };
}

function clientCertificate(server: TlsSettings): TlsOptions {
  const { tls_client_cert_file: cert, tls_client_key_file: key } = server;
  if ((cert === undefined) !== (key === undefined)) {
    throw invalid(
      `gateway ${'url' in server ? redactUrl(server.url) : server.address}: set both of tls_client_cert_file and tls_client_key_file, or neither`,
    );
  }
  return {
    ...optionalFile('cert', 'tls_client_cert_file', cert),
    ...optionalFile('key', 'tls_client_key_file', key),
  };
}

function optionalFile(
  option: 'ca' | 'cert' | 'key',
  setting: string,
  path: string | undefined,
): TlsOptions {
  return path === undefined ? {} : { [option]: readBytes(setting, path) };
}

function readBytes(setting: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw invalid(`${setting}: cannot read ${path} (${code})`, cause);
  }
}

function invalid(message: string, cause?: unknown): NightshiftError {
  return new NightshiftError('config_invalid', message, { cause });
}
