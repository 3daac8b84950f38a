import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { packageRoot } from '../platform/package-root';
import { leanBundle } from './lean-bundle';
import { withShortStacks } from './short-stacks';
import { bundleSource } from './workflow-source';

/** Path of the workflow bundle: the build writes it, workers read it. */
export function bundlePath(): string {
  return join(packageRoot(), 'dist', 'workflow-bundle.js');
}

/**
 * Bundles the workflows at build time. It takes 1.7 s and loads webpack, which no worker should pay for
 * when it starts.
 */
async function bundleWorkflows(workflowsPath: string): Promise<string> {
  const { code } = await bundleWorkflowCode({
    ...bundleSource(workflowsPath),
    logger: {
      trace,
      debug: trace,
      info: trace,
      warn: console.warn,
      error: console.error,
      log: trace,
    },
  });
  return withShortStacks(leanBundle(code, packageRoot()));
}

function trace(): void {
  // Progress of webpack is noise in a build log.
}

async function main(): Promise<void> {
  const code = await bundleWorkflows(join(__dirname, '..', 'workflows'));
  await writeFile(bundlePath(), code);
}

if (require.main === module) {
  main().catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  });
}
