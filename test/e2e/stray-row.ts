import type { Client as Postgres } from 'pg';
import type { TestStack } from '../support/stack';
import { chatLines, submit, untilTerminal } from '../support/stack';

/**
 * Inserts a row like that of an API that died before it started the workflow: ten minutes old, with a file.
 * With `isStarted` the row claims that its workflow was started, and the API leaves it alone.
 */
export async function strayRow(
  { stack, postgres }: { stack: TestStack; postgres: Postgres },
  row: {
    expiresInSec: number;
    isStarted?: boolean;
    id?: string;
  },
): Promise<string> {
  const template = await submit(stack.client, chatLines(3));
  await untilTerminal(stack.client, template.id);
  const reversed = template.id.slice('batch_'.length).split('').reverse().join('');
  const { expiresInSec, isStarted = false, id = `batch_${reversed}` } = row;
  await postgres.query(
    `insert into batches (id, tenant, endpoint, input_file_id, input_object_key, input_bytes,
       completion_window, created_at, expires_at, workflow_started_at)
     select $1, tenant, endpoint, input_file_id, input_object_key, input_bytes, completion_window,
       created_at - 600, extract(epoch from now())::bigint + $3, case when $4 then now() end
     from batches where id = $2`,
    [id, template.id, expiresInSec, isStarted],
  );
  return id;
}
