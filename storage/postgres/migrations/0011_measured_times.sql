-- Times of a batch for metrics, on the clock of the database. Null in rows of the previous release, and while
-- it has not happened.

-- when the row was inserted: created_at has whole seconds, on the clock of an API server. The default is set
-- on its own, so that existing rows do not get the time of this migration, and rows that the previous release
-- inserts get theirs.
alter table batches add column inserted_at timestamptz;
alter table batches alter column inserted_at set default now();
alter table batches add column ingestion_started_at timestamptz;
alter table batches add column first_request_at timestamptz;
-- the worker that began the latest ingestion or finalization, and when
alter table batches add column step_worker text;
alter table batches add column step_began_at timestamptz;
