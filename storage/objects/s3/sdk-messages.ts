import type { HeaderFields } from '../../../platform/http-client/header-fields';
import type { LentBody } from './lent-body';

/** The parts of a request of the SDK that are used here. */
export interface SdkRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  /** Escaped. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** The answer, as the SDK wants it. */
export interface SdkAnswer {
  readonly statusCode: number;
  /** By names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: LentBody;
}

/** Where a request goes, such as `http://127.0.0.1:9000`. */
export function originOf({ protocol, hostname, port }: SdkRequest): string {
  return `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`;
}

/** Path and query, escaped as in the signature. */
export function targetOf({ path, query = {} }: SdkRequest): string {
  const fields = Object.entries(query).flatMap(([name, values]) =>
    [values].flat().map((value) => `${escaped(name)}=${escaped(value ?? '')}`),
  );
  return fields.length === 0 ? path : `${path}?${fields.join('&')}`;
}

/** Name, value, name, value, …; without `host`, which the client writes itself. */
export function fieldsOf({ headers }: SdkRequest): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    name.toLowerCase() === 'host' ? [] : [name, value],
  );
}

/** By names in lower case; values of a repeated field are joined. */
export function headersOf(fields: HeaderFields): Record<string, string> {
  const headers: Record<string, string> = {};
  const pairs = fields.pairs();
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const name = (pairs[i] ?? '').toLowerCase();
    const value = pairs[i + 1] ?? '';
    headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value;
  }
  return headers;
}

function escaped(text: string): string {
  const hex = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replace(/[!'()*]/g, hex);
}
