-- Users and databases of docker-compose.yml. PostgreSQL's image runs this once, on an empty volume.
-- nightshift migrate grants the users of the API and the worker their rights on tables.
do $$
declare
  name text;
begin
  foreach name in array array['nightshift_migrate', 'nightshift_api', 'nightshift_worker', 'temporal'] loop
    execute format('create role %I login password %L', name,
      trim(E' \n' from pg_read_file('/run/passwords/' || name || '/postgres-password')));
  end loop;
end $$;

create database nightshift owner nightshift_migrate;
create database temporal owner temporal;
create database temporal_visibility owner temporal;

-- By default every user may connect to every database and create temporary tables there.
revoke all on database nightshift, temporal, temporal_visibility, postgres, template1 from public;
grant connect on database nightshift to nightshift_api, nightshift_worker;
