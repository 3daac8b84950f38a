-- Headers of a create call that are sent with every request of its batch, encrypted (AES-256-GCM, the
-- batch's id as associated data). They are deleted when their batch ends.
create table batch_headers (
  batch_id text primary key,
  -- which key opens them: the first 8 hex digits of its SHA-256
  key_id   text not null,
  -- 12 bytes nonce, ciphertext, 16 bytes tag
  sealed   bytea not null
);
-- stays true: a chunk that cannot read the headers must know that it has to wait for them
alter table batches add column passes_headers boolean not null default false;
