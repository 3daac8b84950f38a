'use strict';

/** What a stack has stored and used so far: differences of two looks are what lay between them. */
const { Client: Postgres } = require('pg');
const { Client: Temporal, Connection } = require('@temporalio/client');
const { pause } = require('./api-client');
const { folderBytes, objectBytes } = require('./disk-usage');
const { cpuSec, family } = require('./process-stats');

/** Idle connections report their transactions within ten seconds. */
const FLUSH_MS = 11_000;
const TABLES = `
  select format('%I.%I', schemaname, relname) as name from pg_stat_user_tables order by 1`;

/** Connections to the databases of a stack. @returns {Promise<{ postgres: object, temporal: object, close(): Promise<unknown> }>} */
async function connect({ postgresUrl, temporalAddress, temporalNamespace }) {
  const postgres = new Postgres({ connectionString: postgresUrl, application_name: 'bench' });
  await postgres.connect();
  const connection = await Connection.connect({ address: temporalAddress });
  const temporal = new Temporal({ connection, namespace: temporalNamespace });
  return {
    ...{ postgres, temporal },
    close: () => Promise.all([postgres.end(), connection.close()]),
  };
}

/** Bytes of each store; those of objects by kind. */
async function stores({ dataDir }, { postgres }) {
  const { rows } = await postgres.query(
    'select pg_database_size(current_database())::bigint as size',
  );
  return {
    objects: objectBytes(dataDir),
    postgres: Number(rows[0].size),
    temporal: folderBytes(`${dataDir}/temporal`),
  };
}

/** Processor seconds of each part since it began. */
function processorSec({ pidOf }) {
  const of = (part) => family([pidOf(part)]).reduce((sum, pid) => sum + cpuSec(pid), 0);
  return {
    temporalSec: of('temporal'),
    postgresSec: of('postgres'),
    workerSec: of('worker'),
    apiSec: of('api'),
  };
}

/** Rows in all tables of the product. */
async function rowsStored({ postgres }) {
  const { rows: tables } = await postgres.query(TABLES);
  let sum = 0;
  for (const { name } of tables) {
    const { rows } = await postgres.query(`select count(*)::int as count from ${name}`);
    sum += rows[0].count;
  }
  return sum;
}

/** Transactions of PostgreSQL so far; a statement outside of one counts as one. Takes eleven seconds. */
async function transactions({ postgres }) {
  await pause(FLUSH_MS);
  const { rows } = await postgres.query(
    `select (xact_commit + xact_rollback)::bigint as count from pg_stat_database
     where datname = current_database()`,
  );
  return Number(rows[0].count);
}

module.exports = { connect, processorSec, rowsStored, stores, transactions };
