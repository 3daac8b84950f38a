-- Times of a batch for metrics, on the clock of the database. Null in rows of the previous release, and while
-- it has not happened.

-- when the row was inserted: created_at has whole seconds, on the clock of an API server
alter table batches add column inserted_at timestamptz;
alter table batches add column ingestion_started_at timestamptz;
alter table batches add column first_request_at timestamptz;
-- the worker that began the latest ingestion or finalization, and when
alter table batches add column step_worker text;
alter table batches add column step_began_at timestamptz;
