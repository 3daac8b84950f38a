import { readFileSync } from 'node:fs';
import type { RuleBreak } from './config-rule';
import type { Config } from './config-schema';

/** Rules between the settings below `postgres`. */
export function postgresRule(postgres: Config['postgres'], needed: boolean): RuleBreak[] {
  const { url, password_file: file } = postgres;
  if (url === '') {
    const message = 'required: set it, or DATABASE_URL, to postgres://user:password@host:5432/name';
    return needed ? [{ path: ['postgres', 'url'], message }] : [];
  }
  if (!isPostgresUrl(url)) {
    const message = 'expected postgres://user:password@host:5432/name';
    return [{ path: ['postgres', 'url'], message }];
  }
  if (file === undefined || new URL(url).password === '') return [];
  const message = 'postgres.url already contains a password: remove one of the two';
  return [{ path: ['postgres', 'password_file'], message }];
}

/** Copies the password of `password_file` into `url`: all other code needs only the URL. */
export function fillInPassword(postgres: Config['postgres']): RuleBreak[] {
  const { url, password_file: file } = postgres;
  if (file === undefined || !isPostgresUrl(url)) return [];
  const path = ['postgres', 'password_file'];
  try {
    const password = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    if (password === '') return [{ path, message: `${file} is empty: write the password into it` }];
    const filled = new URL(url);
    filled.password = encodeURIComponent(password);
    if (filled.password === '') return [{ path, message: 'postgres.url has no host: add one' }];
    postgres.url = filled.href;
    return [];
  } catch (error) {
    return [{ path, message: `cannot be read: ${(error as Error).message}` }];
  }
}

function isPostgresUrl(url: string): boolean {
  return /^postgres(ql)?:\/\//.test(url) && URL.canParse(url);
}
