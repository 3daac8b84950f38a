'use strict';

/** A database of a peer's own beside Nightshift's, in the same PostgreSQL. */
const { Client } = require('pg');

/**
 * @param {string} postgresUrl of Nightshift's
 * @returns {Promise<{ url: string, drop(): Promise<void> }>}
 */
async function createDatabase(postgresUrl) {
  const name = `bench_${process.pid}_${Date.now()}`;
  const admin = new Client({ connectionString: postgresUrl });
  await admin.connect();
  await admin.query(`create database ${name}`);
  const url = new URL(postgresUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async drop() {
      await admin.query(`drop database if exists ${name} with (force)`);
      await admin.end();
    },
  };
}

module.exports = { createDatabase };
