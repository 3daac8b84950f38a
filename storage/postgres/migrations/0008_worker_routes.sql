-- Which models each worker can send, shared with the other workers.
create table worker_routes (
  worker  text primary key,
  -- { "global": request timeout in ms or null, "models": { model: request timeout in ms } }
  routes  jsonb not null,
  seen_at timestamptz not null default now()
);
create index worker_routes_by_time on worker_routes (seen_at);
