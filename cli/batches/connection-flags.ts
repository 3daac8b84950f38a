import { InvalidArgumentError, Option, type Command } from 'commander';
import { NightshiftError } from '../../core/errors';
import { withoutTrailingSlashes } from '../../platform/http-client/base-url';
import type { Environment } from '../../platform/config';

/** Flags that every client command takes. */
export interface ConnectionFlags {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly tenant?: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly json?: boolean;
}

/** Where the server is and who asks. */
export interface Connection {
  readonly baseUrl: string;
  /** `null` if none was given, or none may be sent there. */
  readonly apiKey: string | null;
  /** Whether the user chose the server. */
  readonly isChosen: boolean;
  readonly env: Environment;
  readonly headers: Readonly<Record<string, string>>;
  /** What a command that goes on with this server must be given as well, with a leading space. */
  readonly repeated: string;
}

const DEFAULT_BASE_URL = 'http://127.0.0.1:8000/v1';
const TENANT_HEADER = 'X-MaaS-Username';

/** Adds the flags of {@link ConnectionFlags} to a command. */
export function withConnectionFlags(command: Command): Command {
  return command
    .option('--base-url <url>', `the server (env OPENAI_BASE_URL; default ${DEFAULT_BASE_URL})`)
    .option('--api-key <key>', 'key for it (better: env OPENAI_API_KEY, which nobody else sees)')
    .option('--tenant <name>', `whose batches: sent as ${TENANT_HEADER}`)
    .addOption(
      new Option('--header <name: value>', 'further header, repeatable').argParser(collectHeader),
    )
    .option('--json', 'one JSON document on stdout, for scripts');
}

/**
 * Flags over environment over defaults. Any program may listen at the default address, so no key is sent
 * there. @throws invalid_request for a base URL that is none, and for a key without one
 */
export function connectionOf(flags: ConnectionFlags, env: Environment): Connection {
  const chosen = flags.baseUrl ?? (env['OPENAI_BASE_URL'] || null);
  const baseUrl = chosen ?? DEFAULT_BASE_URL;
  if (chosen === null) refuseKeyFlags(flags);
  const protocol = URL.canParse(baseUrl) ? new URL(baseUrl).protocol : '';
  if (protocol !== 'http:' && protocol !== 'https:') {
    const message = `"${baseUrl}" is no base URL: expected something like ${DEFAULT_BASE_URL}`;
    throw new NightshiftError('invalid_request', message);
  }
  const tenant = flags.tenant === undefined ? {} : { [TENANT_HEADER]: flags.tenant };
  return {
    baseUrl: withoutTrailingSlashes(baseUrl),
    apiKey: chosen === null ? null : (flags.apiKey ?? env['OPENAI_API_KEY']) || null,
    isChosen: chosen !== null,
    env,
    headers: { ...flags.header, ...tenant },
    repeated: repeatedFlags(flags),
  };
}

function refuseKeyFlags({ apiKey, header = {} }: ConnectionFlags): void {
  const secret = Object.keys(header).find((name) => /^(authorization|api-key)$/i.test(name));
  if (apiKey === undefined && secret === undefined) return;
  const flag = apiKey === undefined ? `--header ${secret}` : '--api-key';
  const message = `${flag} is not sent to the default address: name the server, for example --base-url ${DEFAULT_BASE_URL}`;
  throw new NightshiftError('invalid_request', message);
}

function repeatedFlags({ baseUrl, tenant }: ConnectionFlags): string {
  const server = baseUrl === undefined ? '' : ` --base-url ${shellWord(baseUrl)}`;
  return tenant === undefined ? server : `${server} --tenant ${shellWord(tenant)}`;
}

/** A text as one word of a shell's command line. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function collectHeader(
  text: string,
  previous: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const match = /^([\w!#$%&'*+.^`|~-]+)\s*:(.*)$/.exec(text);
  if (!match?.[1]) throw new InvalidArgumentError('expected "Name: value"');
  return { ...previous, [match[1]]: match[2]?.trimStart() ?? '' };
}
