import type { Pool } from 'pg';
import type { BatchStatus } from '../../core/batch/status';
import { isLegalTransition, STATUS_TIMES } from './transitions';
import { isTerminal } from '../../core/batch/status';

type State = Readonly<Record<string, unknown>>;

/** Makes the database record every state of every batch row. */
export async function startAudit(pool: Pool): Promise<void> {
  await pool.query(
    `create table audit (n serial, id text, row jsonb);
     create function audit() returns trigger language plpgsql as $$
       begin insert into audit (id, row) values (new.id, to_jsonb(new)); return new; end $$;
     create trigger audit after insert or update on batches for each row execute function audit();`,
  );
}

/** Recorded states of one row, or of all rows, in order for each row. */
export async function statesOf(pool: Pool, id?: string): Promise<State[]> {
  const { rows } = await pool.query<{ row: State }>(
    'select row from audit where $1::text is null or id = $1 order by id, n',
    [id ?? null],
  );
  return rows.map(({ row }) => row);
}

/** The sequence of statuses of one row. */
export async function wayOf(pool: Pool, id: string): Promise<BatchStatus[]> {
  const statuses = (await statesOf(pool, id)).map((state) => state['status'] as BatchStatus);
  return statuses.filter((status, i) => status !== statuses[i - 1]);
}

/** Violations of what must hold between consecutive states of a row (docs/design/ends.md#status-guard). */
export function faultsOf(states: readonly State[]): string[] {
  return states.flatMap((now, i) => {
    const before = states[i - 1];
    const faults = faultsWithin(now);
    if (before?.['id'] === now['id']) faults.push(...faultsBetween(before as State, now));
    return faults.map((fault) => `${String(now['id'])}: ${fault}`);
  });
}

function faultsWithin(now: State): string[] {
  const faults: string[] = [];
  const status = now['status'] as BatchStatus;
  if (now['stop_cause'] !== null && status === 'completed') faults.push('completed with a cause');
  const settled = Number(now['completed']) + Number(now['failed']);
  if (settled > Number(now['total'])) faults.push('more settled than there are');
  if (isTerminal(status) && now[`${status}_at`] === null) faults.push(`${status} without its time`);
  return faults;
}

function faultsBetween(before: State, now: State): string[] {
  const faults: string[] = [];
  const [from, to] = [before['status'] as BatchStatus, now['status'] as BatchStatus];
  if (from !== to && !isLegalTransition(from, to)) faults.push(`${from} became ${to}`);
  for (const key of ['stop_cause', ...STATUS_TIMES]) {
    if (before[key] !== null && before[key] !== now[key]) faults.push(`${key} was changed`);
  }
  return faults;
}
