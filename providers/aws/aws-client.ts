import type { AwsCredentials } from './aws-account';
import type { AwsTransport } from './transport';

/** How the requests of a client are signed and sent. */
export interface AwsAccess {
  readonly credentials: AwsCredentials;
  readonly transport: AwsTransport;
}

/** The SDK would write its warnings to the console. */
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** Options of each client of AWS's SDK: one attempt per call, through our transport. */
export function awsClientOptions({ credentials, transport }: AwsAccess): {
  readonly maxAttempts: number;
  readonly logger: typeof SILENT;
  readonly requestHandler: AwsTransport['requestHandler'];
} & AwsCredentials['config'] {
  const { requestHandler } = transport;
  return { maxAttempts: 1, logger: SILENT, requestHandler, ...credentials.config };
}
