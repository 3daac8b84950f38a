import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';

/** Whom Postgres runs as; no uid: as ourselves. */
export interface RunAs {
  readonly name: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** Postgres refuses to run as root: these users are asked for, in this order. */
const USERS = ['postgres', 'nobody'];

/** @throws postgres_unavailable as root on a system without any of the users */
export function chooseUser(): RunAs {
  if (process.getuid?.() !== 0) return { name: 'yours' };
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of USERS) {
    const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(':');
    if (fields === undefined) continue;
    return { name, uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  const message = `PostgreSQL does not run as root, and there is no user ${USERS.join(' or ')}: start as another user, or set postgres.url`;
  throw new NightshiftError('postgres_unavailable', message);
}

/** Folders that outlive a reboot and that every user can pass, best first. */
const SPARE_PLACES = ['/var/lib/nightshift', '/var/tmp/nightshift'];

/** A place for what must not lie below a closed home. @throws postgres_unavailable where there is none */
export function sharedFolder(): string {
  for (const place of SPARE_PLACES) {
    try {
      mkdirSync(place, { recursive: true, mode: 0o755 });
      if (isOurs(place)) return place;
    } catch {
      // The next one.
    }
  }
  const message = `none of ${SPARE_PLACES.join(', ')} can be made for PostgreSQL's files: set postgres.url`;
  throw new NightshiftError('postgres_unavailable', message);
}

/** In /var/tmp anybody may have made it before us: only our own folder will do, no link to another. */
function isOurs(place: string): boolean {
  const found = lstatSync(place);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) return false;
  if ((found.mode & 0o7777) !== 0o755) chmodSync(place, 0o755);
  return true;
}

/**
 * The folder for the database of the data directory `folder`: that very one where `runAs` can work in
 * it, otherwise one outside whose name follows from it, so that the next start finds it again.
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
