import { InvalidArgumentError, type Command } from 'commander';
import { NightshiftError } from '../../core/errors';
import { isTenantName, TENANT_NAME_RULE } from '../../core/openai/tenant-name';
import { parseDurationMs } from '../../platform/units';
import type { ApiKeyRecord } from '../../storage/postgres/api-keys';
import { examples } from '../help';
import { type DatabaseFlags, withKeys } from './key-database';
import { say, table } from '../output';

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

/** `nightshift keys`: who may use the API in `auth.mode: api_key`. */
export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description('keys for the API, with auth.mode: api_key');
  withDatabaseFlags(keys.command('create'))
    .description('make a key; it is written to stdout this once and kept nowhere')
    .option('--tenant <name>', 'whose requests it makes', parseTenant, 'default')
    .option('--name <text>', 'what it is for', parseName, '')
    .option('--expires <duration>', 'after which time it is refused, such as 90d', parseExpiry)
    .action(createKey);
  withDatabaseFlags(keys.command('list'))
    .description('show all keys but not themselves')
    .option('--tenant <name>', 'only those of one tenant')
    .action(listKeys);
  withDatabaseFlags(keys.command('revoke'))
    .argument('<id>', 'as `keys list` shows it')
    .description('refuse a key from now on')
    .action(revokeKey);
}

function withDatabaseFlags(command: Command): Command {
  return command
    .option('-c, --config <file>', 'YAML file of settings; environment variables go over it')
    .option(
      '--data-dir <dir>',
      'data directory of a stack that `nightshift dev` is running (default: .nightshift)',
    )
    .addHelpText('after', EXAMPLES);
}

async function createKey({ tenant, name, expires, ...flags }: CreateFlags): Promise<void> {
  const nowSec = Math.floor(Date.now() / 1000);
  const expiresAtSec = expires === undefined ? null : nowSec + Math.round(expires / 1000);
  const made = await withKeys(flags, (keys) => keys.create({ tenant, name, expiresAtSec, nowSec }));
  process.stdout.write(`${made.key}\n`);
  say(`key ${made.record.id} for tenant ${tenant}; keep it now, it cannot be shown again`);
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
  const isOver = expiresAtSec !== null && expiresAtSec <= nowSec;
  const state = revokedAtSec !== null ? 'revoked' : isOver ? 'expired' : 'valid';
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
      `there is no key ${keyIdOf(id)}: see nightshift keys list`,
    );
  }
  const when =
    sinceSec < nowSec ? `was revoked already, ${timeText(sinceSec)} UTC` : 'is refused from now on';
  say(`key ${keyIdOf(id)} ${when}`);
}

/** People paste the key itself: its id is in it, the rest is not repeated. */
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
