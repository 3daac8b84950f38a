import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { packageRoot } from '../platform/package-root';
import { workflowInterceptorModules } from './workflow-source';

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
    workflowsPath,
    workflowInterceptorModules: workflowInterceptorModules(),
    logger: {
      trace,
      debug: trace,
      info: trace,
      warn: console.warn,
      error: console.error,
      log: trace,
    },
  });
  return withoutSources(code);
}

const INLINE_MAP = /\n\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]+)\s*$/;

/**
 * Removes the sources from the bundle's source map. Stack traces need only the rest, and every worker
 * would keep several copies of the sources, 13 MB in all.
 */
function withoutSources(code: string): string {
  const found = INLINE_MAP.exec(code);
  if (found?.[1] === undefined) return code;
  const map = JSON.parse(Buffer.from(found[1], 'base64').toString()) as Record<string, unknown>;
  delete map['sourcesContent'];
  const lean = Buffer.from(JSON.stringify(map)).toString('base64');
  return `${code.slice(0, found.index)}\n//# sourceMappingURL=data:application/json;base64,${lean}`;
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
