-- Completions of an upload that were refused after reading its parts, counted to bound them.
alter table uploads add column refused_completions integer not null default 0;
-- Open uploads of a tenant are counted whenever it creates a file or an upload.
create index uploads_open on uploads (tenant) where status = 'pending';
