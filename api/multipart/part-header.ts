import { malformed } from './malformed';

/** What the header of a part says (RFC 7578 §4.2). */
export interface PartHeader {
  readonly name: string;
  /** Null for a plain field. */
  readonly filename: string | null;
}

/**
 * Reads `Content-Disposition`; other fields are not looked at, the content type least of all
 * (contract §1.1). Names are raw UTF-8; browsers and SDKs write a double quote as `%22`, old clients
 * as `\"`. @throws invalid_request
 */
export function parsePartHeader(header: Buffer): PartHeader {
  const disposition = header
    .toString('utf8')
    .split('\r\n')
    .map((line) => /^content-disposition\s*:(.*)$/i.exec(line)?.[1])
    .find((value) => value !== undefined);
  if (disposition === undefined || !/^\s*form-data\b/i.test(disposition)) {
    throw malformed('a part has no content-disposition');
  }
  const name = parameter(disposition, 'name');
  if (name === null) throw malformed('a part has no name');
  return { name, filename: extendedFilename(disposition) ?? parameter(disposition, 'filename') };
}

function parameter(disposition: string, name: string): string | null {
  const pattern = new RegExp(`;\\s*${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, 'i');
  const match = pattern.exec(disposition);
  if (match === null) return null;
  const value = match[1]?.replace(/\\"/g, '"') ?? match[2] ?? '';
  return value.replace(/%22/g, '"').replace(/%0D/gi, '\r').replace(/%0A/gi, '\n');
}

/** `filename*=UTF-8''…` (RFC 5987), which some HTTP libraries add for names that are not ASCII. */
function extendedFilename(disposition: string): string | null {
  const match = /;\s*filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition);
  if (match === null) return null;
  try {
    return decodeURIComponent(match[1] ?? '');
  } catch {
    return null;
  }
}
