/** Interceptors that run inside the workflow sandbox: tracing, wired from the first history on. */
export function workflowInterceptorModules(): string[] {
  return [require.resolve('@temporalio/interceptors-opentelemetry-v2/lib/workflow-interceptors')];
}
