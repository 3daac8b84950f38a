-- Places in lists of batches that retention has removed: a client may be paging past them.
create table removed_batches (
  id         text primary key,
  tenant     text not null,
  created_at bigint not null,
  seq        bigint not null,
  removed_at bigint not null
);
create index removed_batches_to_sweep on removed_batches (removed_at);
