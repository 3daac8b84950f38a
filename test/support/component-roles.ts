/** The users and databases of docker-compose.yml, created under unique names in the PostgreSQL of this run. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Pool } from 'pg';

export type RoleName = 'nightshift_migrate' | 'nightshift_api' | 'nightshift_worker' | 'temporal';

export interface ComponentRoles {
  /** The unique name of a user. */
  name(role: RoleName): string;
  /** The URL for a user; by default to the database of Nightshift. */
  url(role: RoleName, database?: string): string;
  /** Removes all. Connections must be closed before. */
  remove(): Promise<void>;
}

const ROLES: readonly RoleName[] = [
  'nightshift_migrate',
  'nightshift_api',
  'nightshift_worker',
  'temporal',
];
const DATABASES = ['nightshift', 'temporal', 'temporal_visibility'];
const SQL = path.join(__dirname, '..', '..', 'deploy', 'postgres-roles.sql');

/** Runs deploy/postgres-roles.sql as the superuser `admin`, whose database is at `url`. */
export async function createComponentRoles(admin: Pool, url: string): Promise<ComponentRoles> {
  const suffix = randomBytes(4).toString('hex');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-passwords-'));
  fs.chmodSync(folder, 0o755);
  const name = (plain: string): string => `${plain}_${suffix}`;
  for (const role of ROLES) {
    fs.mkdirSync(path.join(folder, name(role)));
    fs.writeFileSync(path.join(folder, name(role), 'postgres-password'), `of-${role}\n`);
  }
  for (const statement of statements(suffix, folder)) await admin.query(statement);
  return {
    name,
    url: (role, database = 'nightshift') => {
      const place = new URL(url);
      place.username = name(role);
      place.password = `of-${role}`;
      place.pathname = name(database);
      return place.href;
    },
    remove: async () => {
      for (const one of DATABASES) await admin.query(`drop database ${name(one)} with (force)`);
      for (const one of ROLES) await admin.query(`drop role ${name(one)}`);
      fs.rmSync(folder, { recursive: true });
    },
  };
}

/** Single statements, because `create database` must run alone. Skips what would affect other databases. */
function statements(suffix: string, folder: string): string[] {
  return fs
    .readFileSync(SQL, 'utf8')
    .replace(/, postgres, template1 from/, ' from')
    .replaceAll(/\b(nightshift_\w+|nightshift|temporal_visibility|temporal)\b/g, `$1_${suffix}`)
    .replaceAll('/run/passwords', folder)
    .split(/;\n(?=\n|create|grant|revoke)/)
    .filter((text) => text.trim() !== '');
}
