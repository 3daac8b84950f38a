-- Jobs at the provider that may be this one, until their results tell (docs/design/provider-jobs.md#proof-by-results).
-- Empty: the job does not exist. Null: that is not known.
alter table provider_jobs add column candidates text[];
