import { InvalidArgumentError, Option, type Command } from 'commander';
import { NightshiftError } from '../../core/errors';
import type { Environment } from '../../platform/config';
import { withoutTrailingSlashes } from '../../platform/http-client/base-url';

/** Flags of every batch command. */
export interface ConnectionFlags {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly tenant?: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly json?: boolean;
}

/** Address of the server and identity of the caller. */
export interface Connection {
  readonly baseUrl: string;
  /** `null` if there is none, or if it must not be sent to this server. */
  readonly apiKey: string | null;
  /** Whether the user named the server. Otherwise no secrets of the environment are sent to it. */
  readonly isNamedByUser: boolean;
  readonly env: Environment;
  readonly headers: Readonly<Record<string, string>>;
  /** Flags that a suggested command needs to reach the same server, with a leading space; or empty. */
  readonly followUpFlags: string;
}

const DEFAULT_BASE_URL = 'http://127.0.0.1:8000/v1';
const TENANT_HEADER = 'X-MaaS-Username';

/** Adds the flags of {@link ConnectionFlags} to a command. */
export function withConnectionFlags(command: Command): Command {
  return command
    .option(
      '--base-url <url>',
      `base URL of the server (env OPENAI_BASE_URL; default ${DEFAULT_BASE_URL})`,
    )
    .option(
      '--api-key <key>',
      'API key (env OPENAI_API_KEY is safer: other users can see arguments)',
    )
    .option('--tenant <name>', `tenant that owns the batches, sent as ${TENANT_HEADER}`)
    .addOption(
      new Option('--header <name: value>', 'additional HTTP header; repeatable').argParser(
        collectHeader,
      ),
    )
    .option('--json', 'print one JSON document on stdout');
}

/**
 * Combines flags, environment and defaults, in this order of precedence. Any program of any user may
 * listen on the default address, so no key is sent there.
 *
 * @throws invalid_request for an invalid base URL, and for a key without a base URL
 */
export function connectionOf(flags: ConnectionFlags, env: Environment): Connection {
  const chosen = flags.baseUrl ?? (env['OPENAI_BASE_URL'] || null);
  const baseUrl = chosen ?? DEFAULT_BASE_URL;
  if (chosen === null) refuseKeyFlags(flags);
  const protocol = URL.canParse(baseUrl) ? new URL(baseUrl).protocol : '';
  if (protocol !== 'http:' && protocol !== 'https:') {
    const message = `"${baseUrl}" is not a base URL: expected something like ${DEFAULT_BASE_URL}`;
    throw new NightshiftError('invalid_request', message);
  }
  const tenant = flags.tenant === undefined ? {} : { [TENANT_HEADER]: flags.tenant };
  return {
    baseUrl: withoutTrailingSlashes(baseUrl),
    apiKey: chosen === null ? null : (flags.apiKey ?? env['OPENAI_API_KEY']) || null,
    isNamedByUser: chosen !== null,
    env,
    headers: { ...flags.header, ...tenant },
    followUpFlags: followUpFlagsOf(flags),
  };
}

function refuseKeyFlags({ apiKey, header = {} }: ConnectionFlags): void {
  const secret = Object.keys(header).find((name) => /^(authorization|api-key)$/i.test(name));
  if (apiKey === undefined && secret === undefined) return;
  const flag = apiKey === undefined ? `--header ${secret}` : '--api-key';
  const message = `${flag} is not sent to the default address: name the server, for example with --base-url ${DEFAULT_BASE_URL}`;
  throw new NightshiftError('invalid_request', message);
}

function followUpFlagsOf({ baseUrl, tenant }: ConnectionFlags): string {
  const server = baseUrl === undefined ? '' : ` --base-url ${shellWord(baseUrl)}`;
  return tenant === undefined ? server : `${server} --tenant ${shellWord(tenant)}`;
}

/** Quotes a text as one word of a shell command line. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function collectHeader(
  text: string,
  previous: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const match = /^([\w!#$%&'*+.^`|~-]+)\s*:(.*)$/.exec(text);
  if (!match?.[1])
    throw new InvalidArgumentError('expected "Name: value", such as "X-Team: search"');
  return { ...previous, [match[1]]: match[2]?.trimStart() ?? '' };
}
