-- Keys that the API accepts in auth.mode api_key; keys themselves are not stored. Times are Unix seconds.
create table api_keys (
  id           text primary key,
  -- SHA-256 of the whole key: random, so it cannot be guessed from the digest
  hash         bytea not null,
  tenant       text not null,
  name         text not null,
  created_at   bigint not null,
  expires_at   bigint,
  revoked_at   bigint,
  -- to the minute
  last_used_at bigint
);
create index api_keys_by_tenant on api_keys (tenant, created_at);
