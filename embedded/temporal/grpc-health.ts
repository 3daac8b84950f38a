import { connect } from 'node:http2';

const SERVING = 1;
const TIMEOUT_MS = 2_000;

/**
 * Whether a gRPC server at `address` (host:port, no TLS) reports `service` as serving. It makes one call of
 * the standard health protocol over HTTP/2; the supervisor needs no gRPC library for that.
 */
export function isServing(address: string, service: string): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connect(`http://${address}`);
    const end = (serving: boolean): void => {
      clearTimeout(timer);
      session.destroy();
      resolve(serving);
    };
    const timer = setTimeout(() => end(false), TIMEOUT_MS);
    session.once('error', () => end(false));
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.once('error', () => end(false));
    stream.once('end', () => end(statusOf(Buffer.concat(chunks)) === SERVING));
    stream.end(requestFrame(service));
  });
}

/** A gRPC frame: 1 byte of flags, 4 bytes of length, then field 1, the service's name. */
function requestFrame(service: string): Buffer {
  const name = Buffer.from(service);
  const message = Buffer.concat([Buffer.from([0x0a, name.length]), name]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Field 1 of the answer, a varint below 128; 0 (unknown) if it is missing. */
function statusOf(frame: Buffer): number {
  return frame.length >= 7 && frame[5] === 0x08 ? (frame[6] ?? 0) : 0;
}
