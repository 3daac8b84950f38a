import { InvalidArgumentError, type Command } from 'commander';
import { NightshiftError } from '../../core/errors';
import { isTenantName, TENANT_NAME_RULE } from '../../core/openai/tenant-name';
import { parseDurationMs } from '../../platform/units';
import type { ApiKeyRecord } from '../../storage/postgres/api-keys';
import { configOption } from '../config-flag';
import { examples } from '../help';
import { say, table } from '../output';
import { type DatabaseFlags, withKeys } from './key-database';

interface CreateFlags extends DatabaseFlags {
  readonly tenant: string;
  readonly name: string;
  readonly expires?: number;
}

interface ListFlags extends DatabaseFlags {
  readonly tenant?: string;
}

const EXAMPLES = examples([
  'nightshift keys create --tenant research --name ci --expires 90d',
  'nightshift keys list --tenant research',
  'nightshift keys revoke 0123456789abcdef --data-dir .nightshift',
]);

/** Adds `nightshift keys`, which manages the API keys of `auth.mode: api_key`. */
export function addKeyCommands(program: Command): void {
  const keys = program
    .command('keys')
    .description('create, list and revoke API keys (auth.mode: api_key)');
  withDatabaseFlags(keys.command('create'))
    .description('create a key and print it; it is stored only as a hash and cannot be shown again')
    .option('--tenant <name>', 'tenant that the key belongs to', parseTenant, 'default')
    .option('--name <text>', 'what the key is for', parseName, '')
    .option(
      '--expires <duration>',
      'lifetime of the key, such as 90d (default: unlimited)',
      parseExpiry,
    )
    .action(createKey);
  withDatabaseFlags(keys.command('list'))
    .description('list keys by id; the keys themselves are not stored')
    .option('--tenant <name>', 'list only the keys of one tenant')
    .action(listKeys);
  withDatabaseFlags(keys.command('revoke'))
    .argument('<id>', 'id of the key, as shown by nightshift keys list')
    .description('revoke a key: requests with it are refused from now on')
    .action(revokeKey);
}

function withDatabaseFlags(command: Command): Command {
  return command
    .addOption(configOption())
    .option(
      '--data-dir <dir>',
      'data directory of a stack that nightshift dev is running (default: .nightshift)',
    )
    .addHelpText('after', EXAMPLES);
}

async function createKey({ tenant, name, expires, ...flags }: CreateFlags): Promise<void> {
  const nowSec = Math.floor(Date.now() / 1000);
  const expiresAtSec = expires === undefined ? null : nowSec + Math.round(expires / 1000);
  const made = await withKeys(flags, (keys) => keys.create({ tenant, name, expiresAtSec, nowSec }));
  process.stdout.write(`${made.key}\n`);
  say(`created key ${made.record.id} for tenant ${tenant}; store it now, it cannot be shown again`);
}

async function listKeys({ tenant, ...flags }: ListFlags): Promise<void> {
  const records = await withKeys(flags, (keys) => keys.list(tenant));
  const heading = ['id', 'tenant', 'name', 'created', 'expires', 'last used', 'state'];
  const nowSec = Date.now() / 1000;
  const rows = records.map((record) => rowOf(record, nowSec));
  process.stdout.write(`${table([heading, ...rows])}\n`);
}

function rowOf(record: ApiKeyRecord, nowSec: number): string[] {
  const { id, tenant, name, createdAtSec, expiresAtSec, revokedAtSec, lastUsedAtSec } = record;
  const isExpired = expiresAtSec !== null && expiresAtSec <= nowSec;
  const state = revokedAtSec !== null ? 'revoked' : isExpired ? 'expired' : 'valid';
  const times = [createdAtSec, expiresAtSec, lastUsedAtSec].map(timeText);
  return [id, tenant, name === '' ? '-' : name, ...times, state];
}

function timeText(atSec: number | null): string {
  return atSec === null ? '-' : new Date(atSec * 1000).toISOString().slice(0, 16).replace('T', ' ');
}

async function revokeKey(id: string, flags: DatabaseFlags): Promise<void> {
  const nowSec = Math.floor(Date.now() / 1000);
  const sinceSec = await withKeys(flags, (keys) => keys.revoke(keyIdOf(id), nowSec));
  if (sinceSec === null) {
    throw new NightshiftError(
      'not_found',
      `there is no key ${keyIdOf(id)}: nightshift keys list shows all`,
    );
  }
  const when =
    sinceSec < nowSec ? `was already revoked on ${timeText(sinceSec)} UTC` : 'is revoked';
  say(`key ${keyIdOf(id)} ${when}`);
}

/** Users may paste a whole key, which contains its id. The rest is secret and must not be printed. */
function keyIdOf(text: string): string {
  return /^nsk_([0-9a-f]+)_/.exec(text)?.[1] ?? text;
}

function parseTenant(text: string): string {
  if (isTenantName(text)) return text;
  throw new InvalidArgumentError(`expected ${TENANT_NAME_RULE}`);
}

function parseName(text: string): string {
  if (text === '' || isTenantName(text)) return text;
  throw new InvalidArgumentError(`expected ${TENANT_NAME_RULE}`);
}

const DAY_MS = 86_400_000;
const MAX_EXPIRY_MS = 36_500 * DAY_MS;

function parseExpiry(text: string): number {
  const ms = parseDurationMs(text);
  if (ms !== null && ms >= 1_000 && ms <= MAX_EXPIRY_MS) return ms;
  throw new InvalidArgumentError('expected a duration such as 90d, from 1s to 36500d');
}
