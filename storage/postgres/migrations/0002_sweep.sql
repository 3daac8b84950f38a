-- Marks of the sweep: files and batches that carry one are not looked at again.

-- when the bytes were removed; the row stays for a day as a cursor of lists
alter table files add column bytes_gone_at bigint;
create index files_hidden on files (deleted_at) where deleted_at is not null;

alter table batches add column scratch_gone_at timestamptz;
create index batches_ended on batches ((coalesce(completed_at, failed_at, expired_at, cancelled_at)));
