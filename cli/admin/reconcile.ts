import type { LateDelivery, ReconcileReport } from '../../client/maintenance';
import { loadConfig } from '../../platform/config';
import { configFile, type ConfigFlag } from '../config-flag';
import { say, table } from '../output';
import { lazy } from '../lazy-modules';

/** Flags of `nightshift reconcile`. */
export interface ReconcileFlags extends ConfigFlag {
  readonly dryRun?: boolean;
  /** Id of a batch whose files are to be delivered late. */
  readonly finalize?: string;
}

/** `nightshift reconcile`: a worker does it, the table on stdout tells what; exit status 1 with errors. */
export async function runReconcileCommand(flags: ReconcileFlags): Promise<void> {
  const { dryRun = false, finalize } = flags;
  const config = loadConfig({ ...configFile(flags), needs: [] });
  const client = lazy.connection().openClient(config.temporal);
  const { requestLateDelivery, requestReconcile } = lazy.maintenance();
  try {
    if (finalize === undefined) tellReport(await requestReconcile(client, { dryRun }), dryRun);
    else tellDelivery(finalize, await requestLateDelivery(client, finalize));
  } finally {
    await client.connection.close();
  }
}

function tellReport(report: ReconcileReport, dryRun: boolean): void {
  const { actions, acted, examined, errors } = report;
  if (actions.length > 0) {
    const rows = actions.map((one) => [one.batchId, one.status, one.workflow, one.action]);
    process.stdout.write(`${table([['batch', 'status', 'workflow', 'action'], ...rows])}\n`);
  }
  if (acted > actions.length) say(`and ${acted - actions.length} more`);
  const mended = dryRun ? 'would be mended; nothing was changed' : 'mended';
  say(`${examined} open batches, ${acted} ${mended}${errors > 0 ? `, ${errors} errors` : ''}`);
  if (errors > 0) process.exitCode = 1;
}

function tellDelivery(batchId: string, delivery: LateDelivery): void {
  const { status, outputFileId, errorFileId, delivered } = delivery;
  const rows = [
    ['batch', 'status', 'output file', 'error file'],
    [batchId, status, outputFileId ?? '-', errorFileId ?? '-'],
  ];
  process.stdout.write(`${table(rows)}\n`);
  if (!delivered) say('it has its files already; nothing was changed');
}
