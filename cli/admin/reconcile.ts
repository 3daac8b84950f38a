import type { LateDelivery, ReconcileReport } from '../../client/maintenance';
import { loadConfig } from '../../platform/config';
import { configFile, type ConfigFlag } from '../config-flag';
import { lazy } from '../lazy-modules';
import { say, table } from '../output';

/** Flags of `nightshift reconcile`. */
export interface ReconcileFlags extends ConfigFlag {
  readonly dryRun?: boolean;
  /** Id of a batch whose result files are still missing. */
  readonly finalize?: string;
}

/** `nightshift reconcile`: a worker does the work, and this command prints its report. Exit status 1 with errors. */
export async function runReconcileCommand(flags: ReconcileFlags): Promise<void> {
  const { dryRun = false, finalize } = flags;
  const config = loadConfig({ ...configFile(flags), needs: [] });
  const client = lazy.connection().openClient(config.temporal);
  const { requestLateDelivery, requestReconcile } = lazy.maintenance();
  try {
    if (finalize === undefined) printReport(await requestReconcile(client, { dryRun }), dryRun);
    else printDelivery(finalize, await requestLateDelivery(client, finalize));
  } finally {
    await client.connection.close();
  }
}

function printReport(report: ReconcileReport, dryRun: boolean): void {
  const { actions, acted, examined, errors } = report;
  if (actions.length > 0) {
    const rows = actions.map((one) => [one.batchId, one.status, one.workflow, one.action]);
    process.stdout.write(`${table([['batch', 'status', 'workflow', 'action'], ...rows])}\n`);
  }
  if (acted > actions.length) say(`and ${acted - actions.length} more`);
  const repaired = dryRun ? 'would be repaired; nothing was changed' : 'repaired';
  say(`${examined} open batches, ${acted} ${repaired}${errors > 0 ? `, ${errors} errors` : ''}`);
  if (errors > 0) process.exitCode = 1;
}

function printDelivery(batchId: string, delivery: LateDelivery): void {
  const { status, outputFileId, errorFileId, delivered } = delivery;
  const rows = [
    ['batch', 'status', 'output file', 'error file'],
    [batchId, status, outputFileId ?? '-', errorFileId ?? '-'],
  ];
  process.stdout.write(`${table(rows)}\n`);
  if (!delivered) say('the batch already has its result files; nothing was changed');
}
