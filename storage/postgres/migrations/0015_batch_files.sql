-- Files that requests of a batch name (docs/design/ends.md#pinned-files-of-requests). Their bytes stay until the
-- batch has ended, also if they are deleted or expire.
create table batch_files (
  batch_id text not null,
  file_id  text not null,
  primary key (batch_id, file_id)
);
create index batch_files_of_file on batch_files (file_id);
