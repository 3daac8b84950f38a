import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { TLSConfig } from '@temporalio/client';
import { NightshiftError } from '../core/errors';
import type { Config } from '../platform/config-schema';

/** The settings under `temporal`. */
export type TemporalConfig = Config['temporal'];

/** API key and TLS settings, as read at one moment. */
export interface TemporalCredentials {
  readonly apiKey: string | null;
  /** Null for plaintext. */
  readonly tls: TLSConfig | null;
}

/** Reads every file that the settings name. @throws config_invalid, naming the setting and the file */
export function readCredentials(config: TemporalConfig): TemporalCredentials {
  const texts = new Map<string, string>();
  for (const { setting, path } of credentialFiles(config)) {
    try {
      texts.set(setting, readFileSync(path, 'utf8'));
    } catch (cause) {
      throw unreadable(setting, path, cause);
    }
  }
  return assemble(config, texts);
}

/** The same without blocking the event loop, because a file may be on a network share that hangs. */
export async function rereadCredentials(config: TemporalConfig): Promise<TemporalCredentials> {
  const texts = new Map<string, string>();
  for (const { setting, path } of credentialFiles(config)) {
    const text = await readFile(path, 'utf8').catch((cause: unknown) => {
      throw unreadable(setting, path, cause);
    });
    texts.set(setting, text);
  }
  return assemble(config, texts);
}

/** Whether credentials come from files, so that they can change while the process runs. */
export function hasCredentialFiles(config: TemporalConfig): boolean {
  return credentialFiles(config).length > 0;
}

/** Whether TLS settings are equal, so that a connection made with `a` works with `b`. */
export function isSameTls(a: TemporalCredentials, b: TemporalCredentials): boolean {
  return JSON.stringify(a.tls) === JSON.stringify(b.tls);
}

interface CredentialFile {
  readonly setting: string;
  readonly path: string;
}

const TLS_PARTS = ['ca_cert', 'client_cert', 'client_key'] as const;

function credentialFiles({ api_key_file: keyFile, tls }: TemporalConfig): CredentialFile[] {
  const found: CredentialFile[] = [];
  if (keyFile !== undefined) found.push({ setting: 'api_key_file', path: keyFile });
  if (typeof tls !== 'object') return found;
  for (const part of TLS_PARTS) {
    const path = tls[`${part}_file`];
    if (path !== undefined) found.push({ setting: `tls.${part}_file`, path });
  }
  return found;
}

function assemble(config: TemporalConfig, texts: ReadonlyMap<string, string>): TemporalCredentials {
  const apiKey = config.api_key ?? texts.get('api_key_file')?.trim() ?? null;
  if (apiKey === '') throw invalid('api_key_file', 'the file is empty. Write the API key into it.');
  return { apiKey, tls: assembleTls(config, texts) };
}

/** An API key turns TLS on, as in Temporal's own tools, unless `temporal.tls` is set. */
function assembleTls(config: TemporalConfig, texts: ReadonlyMap<string, string>): TLSConfig | null {
  const { tls } = config;
  if (typeof tls !== 'object') {
    const hasKey = config.api_key !== undefined || config.api_key_file !== undefined;
    return (tls ?? hasKey) ? {} : null;
  }
  const textOf = (part: (typeof TLS_PARTS)[number]): string | undefined =>
    tls[`${part}_data`] ?? texts.get(`tls.${part}_file`);
  const [ca, cert, key] = [textOf('ca_cert'), textOf('client_cert'), textOf('client_key')];
  provePem({ ca, cert, key });
  return {
    ...(tls.server_name === undefined ? {} : { serverNameOverride: tls.server_name }),
    ...(ca === undefined ? {} : { serverRootCACertificate: Buffer.from(ca) }),
    ...(cert === undefined || key === undefined
      ? {}
      : { clientCertPair: { crt: Buffer.from(cert), key: Buffer.from(key) } }),
  };
}

interface Pem {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/**
 * Rejects text that is not PEM, and a key that does not belong to the certificate: while the files are
 * replaced, one is new before the other.
 */
function provePem({ ca, cert, key }: Pem): void {
  try {
    createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
  } catch (cause) {
    const reason = (cause as Error).message;
    const message = `the certificates cannot be used (${reason}): they must be PEM, and the client key must belong to the client certificate`;
    throw invalid('tls', message, cause);
  }
}

function unreadable(setting: string, path: string, cause: unknown): NightshiftError {
  const { code } = cause as NodeJS.ErrnoException;
  return invalid(setting, `${path} cannot be read (${code ?? String(cause)})`, cause);
}

function invalid(setting: string, message: string, cause?: unknown): NightshiftError {
  return new NightshiftError('config_invalid', `temporal.${setting}: ${message}`, { cause });
}
