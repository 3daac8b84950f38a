import type { BundleOptions } from '@temporalio/worker';

/** The tracing interceptors that run in the workflow sandbox. */
const INTERCEPTORS = '@temporalio/interceptors-opentelemetry-v2/lib/workflow-interceptors';

/**
 * What a workflow bundle is made of. The SDK evaluates most of its modules again for each workflow, so ECMAScript modules that
 * belong together become one (docs/design/temporal.md#modules-of-a-workflow).
 */
export function bundleSource(workflowsPath: string): BundleOptions {
  return {
    workflowsPath,
    workflowInterceptorModules: [require.resolve(INTERCEPTORS)],
    webpackConfigHook: (config) => ({
      ...config,
      optimization: { ...config.optimization, concatenateModules: true, usedExports: true },
    }),
  };
}
