import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { openDataDir } from '../../../embedded/data-dir';
import { postgresComponent } from '../../../embedded/postgres/postgres-component';
import { openRunState } from '../../../embedded/supervision/run-state';
import { createSupervisor } from '../../../embedded/supervision/supervisor';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-pg-'));
  chmodSync(folder, 0o711);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function answer(url: string, sql: string): Promise<unknown> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ value: unknown }>(sql);
    return rows[0]?.value;
  } finally {
    await client.end().catch(() => undefined);
  }
}

it('the embedded PostgreSQL keeps its data through a kill, a stop and a change of port', async () => {
  const dir = openDataDir(join(folder, 'data'));
  const state = openRunState(dir.run);
  const passwordFile = join(dir.path, 'password');
  const open = async () =>
    postgresComponent({
      folder: dir.postgres,
      passwordFile,
      port: await freePort(),
      say: () => undefined,
    });
  const newSupervisor = () =>
    createSupervisor({ logs: dir.logs, state, onLine: () => undefined, onEvent: () => undefined });

  const supervisor = newSupervisor();
  const { spec, url } = await open();
  await supervisor.launch(spec);
  try {
    await answer(url, 'create table kept (value integer)');
    await answer(url, 'insert into kept values (42)');
    await expect(answer(url.replace(/:[0-9a-f]{48}@/, ':wrong@'), 'select 1')).rejects.toThrow(
      /password/,
    );
    const pid = state.read()[0]?.pid ?? 0;
    expect((await open()).orphanPid).toBe(pid);

    process.kill(pid, 'SIGKILL');
    const kept = () => answer(url, 'select value from kept').catch(() => null);
    expect(await until(kept, 15_000, 'PostgreSQL to be back')).toBe(42);
  } finally {
    await supervisor.stop(() => undefined);
  }

  const second = newSupervisor();
  const again = await open();
  expect(again.orphanPid).toBeNull();
  await second.launch(again.spec);
  try {
    expect(await answer(again.url, 'select value from kept')).toBe(42);
  } finally {
    await second.stop(() => undefined);
  }
  expect(readFileSync(join(dir.logs, 'postgres.log'), 'utf8')).toContain(
    'database system is shut down',
  );

  writeFileSync(join(dir.postgres, 'data', 'PG_VERSION'), '15\n');
  await expect(open()).rejects.toMatchObject({
    code: 'postgres_unavailable',
    message: expect.stringContaining('was created by PostgreSQL 15'),
  });
}, 90_000);
