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
  for (const { setting, path } of [...keyFiles(config), ...tlsFiles(config)]) {
    try {
      texts.set(setting, readFileSync(path, 'utf8'));
    } catch (cause) {
      throw unreadable(setting, path, cause);
    }
  }
  return { apiKey: assembleKey(config, texts), tls: assembleTls(config, texts) };
}

/**
 * Reads the API key without blocking the event loop, because a file may be on a network share that hangs.
 * @throws config_invalid
 */
export async function rereadKey(config: TemporalConfig): Promise<TemporalCredentials['apiKey']> {
  return assembleKey(config, await readTexts(keyFiles(config)));
}

/** Reads the TLS settings in the same way. @throws config_invalid */
export async function rereadTls(config: TemporalConfig): Promise<TemporalCredentials['tls']> {
  return assembleTls(config, await readTexts(tlsFiles(config)));
}

/** Whether credentials come from files, so that they can change while the process runs. */
export function hasCredentialFiles(config: TemporalConfig): boolean {
  return keyFiles(config).length + tlsFiles(config).length > 0;
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

function keyFiles({ api_key_file: path }: TemporalConfig): CredentialFile[] {
  return path === undefined ? [] : [{ setting: 'api_key_file', path }];
}

function tlsFiles({ tls }: TemporalConfig): CredentialFile[] {
  if (typeof tls !== 'object') return [];
  return TLS_PARTS.flatMap((part) => {
    const path = tls[`${part}_file`];
    return path === undefined ? [] : [{ setting: `tls.${part}_file`, path }];
  });
}

async function readTexts(files: readonly CredentialFile[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const { setting, path } of files) {
    const text = await readFile(path, 'utf8').catch((cause: unknown) => {
      throw unreadable(setting, path, cause);
    });
    texts.set(setting, text);
  }
  return texts;
}

function assembleKey(config: TemporalConfig, texts: ReadonlyMap<string, string>): string | null {
  const apiKey = config.api_key ?? texts.get('api_key_file')?.trim() ?? null;
  if (apiKey === '') throw invalid('api_key_file', 'the file is empty. Write the API key into it.');
  return apiKey;
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
