import fs from 'node:fs';
import path from 'node:path';
import { DROP_CODES, dropStatus, type DropCode } from '../../../core/dispatch/drop-codes';

const PAGE = path.resolve(__dirname, '../../../docs/design/flow-control.md');
const codes = Object.keys(DROP_CODES) as DropCode[];

it('the codes of dropped requests are those of the design page, with name and status', () => {
  const rows = fs
    .readFileSync(PAGE, 'utf8')
    .matchAll(/^\| `(\w+)` \| (\w*) ?\| (\d+) \| (●?) ?\|/gm);
  const documented = [...rows].map(([, code, error, status, mark]) => ({
    ...{ code, error: error === '' ? null : error },
    ...{ status: Number(status), isContention: mark !== '' },
  }));
  const built = codes.map((code) => {
    const { error, status, isContention } = DROP_CODES[code];
    return { code, error, status, isContention };
  });
  expect(documented).toEqual(built);
});

it('only contention is answered with 429, and only while a backend is ready', () => {
  const statusOf = (code: DropCode, readyBackends: number) =>
    dropStatus(code, { policy: 'contended', readyBackends });
  expect(codes.filter((code) => statusOf(code, 1) === 429)).toEqual([
    ...['too_many_flows', 'insufficient_flow_capacity'],
    ...['queue_bytes_exceeded', 'queue_ttl_expired'],
  ]);
  expect(codes.filter((code) => statusOf(code, 0) === 429)).toEqual([]);
  expect(dropStatus('too_many_flows', { policy: 'seed', readyBackends: 1 })).toBe(503);
});

it('an expired queue TTL does not look final to a client', () => {
  const final = codes.filter((code) => DROP_CODES[code].reason === 'rejected-ttl-expired');
  expect(final).toEqual(['deadline_exceeded']);
});
