import type { S3Client } from '@aws-sdk/client-s3';

/** Commands whose bodies carry a CRC-32 of their own. */
const COMMANDS = new Set(['PutObjectCommand', 'UploadPartCommand']);
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/;

/** The part of the SDK's request that is used here. */
interface OutgoingRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly headers: Record<string, string>;
}

/**
 * Leaves bodies out of the signature of a request, as S3 allows, if nobody on the way can change them: over
 * TLS, and within this machine. The SHA-256 of a body takes longer than everything else that is done to write
 * it. Their CRC-32 still shows bytes that were damaged.
 */
export function leaveBodiesUnsigned(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName = '' }) =>
      (args) => {
        const request = args.request as OutgoingRequest;
        if (COMMANDS.has(commandName) && isSafe(request)) {
          request.headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
        }
        return next(args);
      },
    { step: 'build', name: 'leaveBodiesUnsigned' },
  );
}

function isSafe({ protocol, hostname }: OutgoingRequest): boolean {
  return protocol === 'https:' || LOOPBACK.test(hostname);
}
