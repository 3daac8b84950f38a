-- The span of the create call, so that every process continues its trace.
alter table batches add column trace_context json;
