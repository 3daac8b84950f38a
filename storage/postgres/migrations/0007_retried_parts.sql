-- true where its client said that it had sent these bytes before: they may be here twice then
alter table upload_parts add column is_retry boolean not null default false;
