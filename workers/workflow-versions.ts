import type { WorkerOptions } from '@temporalio/worker';
import { NightshiftError } from '../core/errors';
import type { Config } from '../platform/config-schema';

type Versions = Pick<Config['temporal'], 'worker_versioning' | 'inactive_patches'>;

/**
 * Worker Versioning, if the settings name a version of this deployment. Workflows follow the deployment's
 * current version (`AUTO_UPGRADE`). Pinned ones would keep old workers alive for as long as a batch may
 * take, which is up to 30 days (docs/design/temporal.md#worker-versioning).
 */
export function deploymentOptions({
  worker_versioning: version,
}: Versions): Pick<WorkerOptions, 'workerDeploymentOptions'> {
  if (version === undefined) return {};
  return {
    workerDeploymentOptions: {
      version: { deploymentName: version.deployment_name, buildId: version.build_id },
      useWorkerVersioning: true,
      defaultVersioningBehavior: 'AUTO_UPGRADE',
    },
  };
}

/**
 * Keeps patches inactive that the settings name: a workflow that meets one for the first time runs the
 * commands of the release before, and its history stays readable for that release.
 * @throws config_invalid if the workflow code has no such patch
 */
export function patchOptions(
  { inactive_patches: inactive }: Versions,
  workflowCode: string,
): Pick<WorkerOptions, 'patchActivationCallback'> {
  if (inactive.length === 0) return {};
  for (const patch of inactive) {
    if (workflowCode.includes(`'${patch}'`) || workflowCode.includes(`"${patch}"`)) continue;
    const text = `temporal.inactive_patches: this release has no patch ${patch}. Remove it from the list.`;
    throw new NightshiftError('config_invalid', text);
  }
  return { patchActivationCallback: ({ patchId }) => !inactive.includes(patchId) };
}
