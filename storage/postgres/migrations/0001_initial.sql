-- The read model (docs/design/read-model.md). Times that the API shows are Unix seconds.

-- One row: the object store of this database. A process that finds another one refuses to start.
create table installation (
  singleton  boolean primary key default true check (singleton),
  store_id   text not null,
  created_at timestamptz not null default now()
);

create table files (
  id           text primary key,
  seq          bigint generated always as identity unique,
  tenant       text not null,
  purpose      text not null,
  filename     text not null,
  bytes        bigint not null,
  sha256       bytea,
  object_key   text not null,
  created_at   bigint not null,
  expires_at   bigint,
  deleted_at   bigint,
  -- the batch whose result this is
  batch_id     text
);
create index files_by_tenant on files (tenant, created_at, seq);
create index files_to_sweep on files (expires_at) where expires_at is not null;

create table batches (
  id                   text primary key,
  seq                  bigint generated always as identity unique,
  tenant               text not null,
  endpoint             text not null,
  input_file_id        text not null,
  -- null: there was no usable file at create; ingestion says so
  input_object_key     text,
  input_bytes          bigint,
  completion_window    text not null,
  -- json, not jsonb: keeps key order, \u0000 and lone surrogates as they came
  metadata             json,
  output_expires_after integer,
  status               text not null default 'validating' check (status in
    ('validating','in_progress','finalizing','completed','failed','expired','cancelling','cancelled')),
  stop_cause           text check (stop_cause in ('cancelled','expired','failed')),
  stop_taken_at        timestamptz,
  model                text,
  models               jsonb,
  total                bigint not null default 0,
  completed            bigint not null default 0,
  failed               bigint not null default 0,
  input_tokens         bigint not null default 0,
  cached_tokens        bigint not null default 0,
  output_tokens        bigint not null default 0,
  reasoning_tokens     bigint not null default 0,
  total_tokens         bigint not null default 0,
  errors               json,
  output_file_id       text,
  error_file_id        text,
  created_at           bigint not null,
  expires_at           bigint not null,
  in_progress_at       bigint,
  finalizing_at        bigint,
  completed_at         bigint,
  failed_at            bigint,
  expired_at           bigint,
  cancelling_at        bigint,
  cancelled_at         bigint,
  -- the row is the outbox of the workflow start
  workflow_started_at  timestamptz,
  updated_at           timestamptz not null default now()
);
create index batches_by_tenant on batches (tenant, created_at, seq);
create index batches_open on batches (created_at)
  where status in ('validating','in_progress','finalizing','cancelling');
create index batches_by_input on batches (input_file_id);
create index batches_to_start on batches (created_at) where workflow_started_at is null;

-- Progress and fencing of running chunks: the holder of the highest epoch may send.
create sequence chunk_epoch;

create table chunk_progress (
  batch_id   text not null,
  safe_model text not null,
  from_pos   bigint not null,
  to_pos     bigint not null,
  epoch      bigint not null,
  worker     text not null,
  completed  bigint not null default 0,
  failed     bigint not null default 0,
  touched_at timestamptz not null default now(),
  released   boolean not null default false,
  primary key (batch_id, safe_model, from_pos)
);

create table idempotency_keys (
  tenant       text not null,
  route        text not null,
  key          text not null,
  fingerprint  text not null,
  object_id    text,
  created_at   timestamptz not null default now(),
  primary key (tenant, route, key)
);
