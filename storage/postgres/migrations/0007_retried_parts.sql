-- true if the client said that it had sent these bytes before, so that they may be stored twice
alter table upload_parts add column is_retry boolean not null default false;
