import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockFile } from '../../../embedded/locks/lock-file';
import * as identity from '../../../embedded/supervision/process-identity';

/** Other processes act while this one takes over the lock of a dead process. */

jest.mock('../../../embedded/supervision/process-identity', () => ({
  __esModule: true,
  ...jest.requireActual<typeof identity>('../../../embedded/supervision/process-identity'),
}));

const DEAD = JSON.stringify({ pid: 2 ** 22 + 1, startedAt: 'boot/1' });
const LIVING = JSON.stringify({ pid: 1, startedAt: null });

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-race-'));
  file = join(folder, 'lock');
  writeFileSync(file, DEAD);
});
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Lets another process act after the lock was found dead, and before it is removed. */
function meanwhile(act: () => void): void {
  const isAlive = identity.isAlive;
  jest.spyOn(identity, 'isAlive').mockImplementationOnce((holder) => {
    const answer = isAlive(holder);
    act();
    return answer;
  });
}

it('a stale lock that another process has just taken over stays with that process', () => {
  meanwhile(() => writeFileSync(file, LIVING));
  expect(lockFile(file)).toEqual({ kind: 'lost', pid: 1 });
  expect(readFileSync(file, 'utf8')).toBe(LIVING);
  expect(readdirSync(folder)).toEqual(['lock']);
});

it('a stale lock that another process has just removed is taken', () => {
  meanwhile(() => rmSync(file));
  const taken = lockFile(file);
  expect(taken.kind).toBe('held');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ pid: process.pid });
  if (taken.kind === 'held') taken.release();
  expect(readdirSync(folder)).toEqual([]);
});
