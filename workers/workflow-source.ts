/**
 * Modules of the tracing interceptors that run in the workflow sandbox. Bundle, workers and replay must use
 * the same ones.
 */
export function workflowInterceptorModules(): string[] {
  return [require.resolve('@temporalio/interceptors-opentelemetry-v2/lib/workflow-interceptors')];
}
