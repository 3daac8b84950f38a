-- What reconcile has tried with an open batch, so that no row stays open forever.

-- restarts of a closed workflow, each within minutes of the one before
alter table batches add column restarts integer not null default 0;
alter table batches add column restarted_at timestamptz;
-- how long reconcile has seen it open past its deadline and grace, in milliseconds, and when last
alter table batches add column overdue_ms bigint not null default 0;
alter table batches add column overdue_seen_at timestamptz;
