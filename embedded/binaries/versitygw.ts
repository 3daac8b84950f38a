import type { GoProgram } from './go-program';

/** An S3 server that keeps its objects in a folder. Tests and the embedded stack use it. */
export const VERSITYGW: GoProgram = {
  name: 'versitygw',
  title: 'S3 server versitygw',
  package: 'github.com/versity/versitygw/cmd/versitygw',
  version: 'v1.8.0',
  versionArguments: ['--version'],
  buildTime: '4 minutes',
};
