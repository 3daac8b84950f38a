/** Interceptors that run inside the workflow sandbox: tracing. They are part of every history. */
export function workflowInterceptorModules(): string[] {
  return [require.resolve('@temporalio/interceptors-opentelemetry-v2/lib/workflow-interceptors')];
}
