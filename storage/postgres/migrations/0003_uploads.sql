-- Uploads: files that arrive in parts. Times are Unix seconds.
create table uploads (
  id                 text primary key,
  tenant             text not null,
  filename           text not null,
  purpose            text not null,
  mime_type          text not null,
  -- as declared; a completion must bring exactly as many
  bytes              bigint not null,
  -- life of the file, seconds from the creation of the upload; null means that of its purpose
  file_expires_after integer,
  -- an upload that expires stays 'pending' here; reads compare expires_at with the clock
  status             text not null default 'pending' check (status in ('pending', 'completed', 'cancelled')),
  created_at         bigint not null,
  expires_at         bigint not null,
  ended_at           bigint,
  -- the completion, so that a repeated one gets the same response
  part_ids           text[],
  file_id            text,
  -- objects that completions have written or begun to write; all but that of the file are left-overs
  joined_keys        text[] not null default '{}',
  -- parts and left-overs are removed
  parts_gone_at      bigint
);
create index uploads_to_sweep on uploads (expires_at);

create table upload_parts (
  id         text primary key,
  upload_id  text not null references uploads (id) on delete cascade,
  bytes      bigint not null,
  sha256     bytea not null,
  created_at bigint not null
);
create index upload_parts_by_upload on upload_parts (upload_id);
