import type { WorkflowHandle } from '@temporalio/client';

/** The details of a batch, as operators see them in Temporal's UI. */
export async function detailsOf(handle: WorkflowHandle): Promise<string> {
  const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
  return metadata.currentDetails ?? '';
}
