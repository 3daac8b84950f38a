-- Jobs at the batch APIs of providers (docs/design/provider-jobs.md). A row is written before each step of its job.
create table provider_jobs (
  id                text primary key,
  seq               bigint generated always as identity unique,
  batch_id          text not null,
  tenant            text not null,
  safe_model        text not null,
  -- plan positions, to_pos excluded
  from_pos          bigint not null,
  to_pos            bigint not null,
  generation        integer not null,
  ordinal           integer not null,
  -- the name that clients use, and the provider's
  model             text not null,
  provider_model    text not null,
  -- the entry of the settings, and a fingerprint of the account that it led to
  provider          text not null,
  account           text not null,
  step              text not null default 'staging' check (step in
    ('staging','staged','uploaded','creating','submitted','ended','collected','refused','abandoned','released')),
  -- what is sent; each is written once
  staged_key        text,
  lines             bigint,
  bytes             bigint,
  tokens            bigint not null default 0,
  upload            text,
  sent_window       text,
  -- the lease of the attempt that may create the job
  create_token      uuid,
  creating_until    timestamptz,
  first_create_at   timestamptz,
  -- when the job asks for a lease again, and how often in a row the provider had no capacity
  asks_again_at     timestamptz,
  capacity_refusals integer not null default 0,
  -- the provider's id of the job; written once
  external_id       text,
  -- true if a look-up found the job, so that the answer of a create call was lost
  adopted           boolean not null default false,
  provider_status   text,
  outcome           text check (outcome in ('completed','partial_complete','failed','expired','cancelled')),
  -- counts of the provider
  total             bigint not null default 0,
  completed         bigint not null default 0,
  failed            bigint not null default 0,
  input_tokens      bigint not null default 0,
  cached_tokens     bigint not null default 0,
  output_tokens     bigint not null default 0,
  cost_usd          double precision,
  -- { "code", "message" } in the words of the provider
  error             json,
  poll_failures     integer not null default 0,
  created_at        timestamptz not null default now(),
  submitted_at      timestamptz,
  ended_at          timestamptz,
  updated_at        timestamptz not null default now(),
  unique (batch_id, safe_model, from_pos, generation, ordinal),
  -- no row can adopt the job of another one
  unique (account, external_id)
);
create index provider_jobs_of_account on provider_jobs (account)
  where step in ('staged','uploaded','creating','submitted');
create index provider_jobs_to_release on provider_jobs (seq) where step <> 'released';

-- after a restore of the database no job is created before this time
alter table installation add column creates_held_until timestamptz;
