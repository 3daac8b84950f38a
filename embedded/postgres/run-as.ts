import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';

/** The user that PostgreSQL runs as. Without `uid` it is the current user. */
export interface RunAs {
  readonly name: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** Users to run as if the current user is root, in order of preference. */
const USERS = ['postgres', 'nobody'];

/**
 * Chooses the user that PostgreSQL runs as. PostgreSQL refuses to run as root, but in a container the user
 * is often root. So root starts it as the user `postgres` or `nobody`. That user must be able to reach the
 * programs and the database. We find out by trying, not from file modes: a mount option, an ACL or a policy
 * may forbid what the modes allow. If it fails, the files are kept outside the data directory
 * (docs/design/embedded-stack.md#postgresql-as-another-user).
 *
 * @throws postgres_unavailable for root on a system without any of the users
 */
export function chooseUser(): RunAs {
  const uid = process.getuid?.();
  if (uid !== 0) return { name: String(uid ?? 'of this process') };
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of USERS) {
    const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(':');
    if (fields === undefined) continue;
    return { name, uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  const message = `PostgreSQL does not run as root, and there is no user ${USERS.join(' or ')}: run nightshift as another user, or set postgres.url (DATABASE_URL)`;
  throw new NightshiftError('postgres_unavailable', message);
}

/** Folders that survive a reboot and that every user can enter, best first. */
const SHARED_FOLDERS = ['/var/lib/nightshift', '/var/tmp/nightshift'];

/** A folder for files that the other user must reach. @throws postgres_unavailable if none can be created */
export function sharedFolder(): string {
  for (const folder of SHARED_FOLDERS) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o755 });
      if (isOurs(folder)) return folder;
    } catch {
      // Try the next one.
    }
  }
  const message = `none of ${SHARED_FOLDERS.join(', ')} can be created for PostgreSQL's files: set postgres.url (DATABASE_URL)`;
  throw new NightshiftError('postgres_unavailable', message);
}

/** In /var/tmp another user may create the folder, or a link, before us: only our own folder is safe. */
function isOurs(folder: string): boolean {
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) return false;
  if ((found.mode & 0o7777) !== 0o755) chmodSync(folder, 0o755);
  return true;
}

/**
 * The folder for the database: `folder` itself if `runAs` can work in it, otherwise a shared folder whose
 * name is derived from `folder`, so that the next start finds it again.
 */
export function databaseFolder(
  folder: string,
  runAs: RunAs,
  say: (message: string) => void,
): string {
  if (runAs.uid === undefined || runAs.gid === undefined) return folder;
  chownSync(folder, runAs.uid, runAs.gid);
  chmodSync(folder, 0o700);
  if (canWorkIn(folder, runAs)) return folder;
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  const outside = join(sharedFolder(), name);
  mkdirSync(outside, { recursive: true, mode: 0o700 });
  chownSync(outside, runAs.uid, runAs.gid);
  chmodSync(outside, 0o700);
  say(`user ${runAs.name} cannot reach ${folder}: the database is kept in ${outside}`);
  return outside;
}

function canWorkIn(folder: string, { uid, gid }: RunAs): boolean {
  const script = 'cd "$1" && test -w . && test -x .';
  const user = { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }) };
  return spawnSync('/bin/sh', ['-c', script, 'sh', folder], { cwd: '/', ...user }).status === 0;
}
