import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { packageRoot } from '../platform/package-root';
import { workflowInterceptorModules } from './workflow-source';

/** Where the build leaves the workflow bundle and workers look for it. */
export function bundlePath(): string {
  return join(packageRoot(), 'dist', 'workflow-bundle.js');
}

/**
 * Bundles the workflows once, at build time: 1.7 s and a webpack in memory that no worker should pay
 * for at its start.
 */
export async function bundleWorkflows(workflowsPath: string): Promise<string> {
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
 * The bundle with its source map, which stack traces need, less the sources in it: every worker keeps
 * several copies, 13 MB in all.
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
  // Webpack's progress is of no use to whoever builds.
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
